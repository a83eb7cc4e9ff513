#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ingest/bytes/byte_source.h"

namespace lockstep::ingest::nsight {

/// Whether `bytes` begin an SQLite database.
bool StartsSqlite(std::string_view bytes);

/// An SQLite file of unknown origin, opened so that it can be read and do nothing: read-only and immutable (no lock, no
/// journal, nothing is written beside it), defensive, with an untrusted schema; of what it declares only plain tables
/// are ever named, so that its views, triggers and virtual tables never run. One thread.
class Database {
 public:
  /// The file at `path`, as it is. Errors: kCorruptData when SQLite cannot read its schema; kIo.
  static Result<std::unique_ptr<Database>> Open(const std::string& path);
  /// What `source` gives: held in memory when it is small, else in a file without a name in TMPDIR. Damage at the end
  /// of a compressed stream is `cut`: what came before is opened.
  static Result<std::unique_ptr<Database>> Spool(ByteSource& source, const std::string& name);
  /// A database that was written here, whose connection it takes over.
  static Result<std::unique_ptr<Database>> Adopt(sqlite3* connection, const std::string& name);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  bool Has(std::string_view table) const;
  bool Has(std::string_view table, std::string_view column) const;
  /// Whether the table is there and holds a row.
  bool HasRows(std::string_view table);
  /// Plain tables, in the order of the schema.
  std::vector<std::string> TableNames() const;
  uint64_t size_bytes() const { return size_bytes_; }
  const std::optional<Error>& cut() const { return cut_; }
  sqlite3* connection() const { return connection_; }

 private:
  struct Table {
    std::string name;
    std::vector<std::string> columns;
  };
  Database() = default;
  Status Connect(const std::string& uri, const std::string& name);
  Status Harden(const std::string& name);
  Status ReadSchema(const std::string& name);
  const Table* Find(std::string_view table) const;

  sqlite3* connection_ = nullptr;
  std::vector<Table> tables_;
  uint64_t size_bytes_ = 0;
  std::optional<Error> cut_;
};

/// One walk over a table in rowid order. Columns that the file lacks are null; so is the whole walk of a table that it
/// lacks. Rows are handed over from inside SQLite's own loop (as the arguments of an aggregate), which is twice as fast
/// as stepping from outside. Texts are views until the next row.
class TableScan {
 public:
  TableScan(const Database& database, std::string_view table, std::initializer_list<const char*> columns);
  TableScan(const TableScan&) = delete;
  TableScan& operator=(const TableScan&) = delete;

  /// Calls visit() for every row, until the end, damage (failure()), or Stop(). Once. What visit() throws comes out.
  template <typename Visit>
  void ForEach(Visit visit) {
    Run([](void* called) { (*static_cast<Visit*>(called))(); }, &visit);
  }
  /// From inside visit(): this row is the last.
  void Stop() { stopped_ = true; }

  bool IsNull(int column) const { return sqlite3_value_type(values_[column]) == SQLITE_NULL; }
  int64_t Int(int column) const { return sqlite3_value_int64(values_[column]); }
  std::optional<int64_t> MaybeInt(int column) const {
    if (IsNull(column)) return std::nullopt;
    return Int(column);
  }
  std::string_view Text(int column) const;

  uint64_t row_count() const { return row_count_; }
  /// Why the walk ended early; empty when it did not.
  const std::string& failure() const { return failure_; }

 private:
  void Run(void (*visit)(void*), void* called);
  static void Step(sqlite3_context* context, int count, sqlite3_value** values);
  static void Finish(sqlite3_context* /*context*/) {}

  sqlite3* connection_;
  std::string sql_;  ///< Empty: there is no such table.
  int column_count_ = 0;
  sqlite3_value** values_ = nullptr;
  void (*visit_)(void*) = nullptr;
  void* called_ = nullptr;
  std::exception_ptr thrown_;
  uint64_t row_count_ = 0;
  uint64_t max_rows_ = 0;
  bool stopped_ = false;
  std::string failure_;
};

}  // namespace lockstep::ingest::nsight
