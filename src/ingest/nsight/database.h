#pragma once

#include <sqlite3.h>

#include <cstdint>
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
/// lacks. Texts are views until the next row.
class TableScan {
 public:
  TableScan(const Database& database, std::string_view table, std::initializer_list<const char*> columns);
  ~TableScan() { sqlite3_finalize(statement_); }
  TableScan(const TableScan&) = delete;
  TableScan& operator=(const TableScan&) = delete;

  /// To the next row; false at the end, or at damage (failed()).
  bool Next();
  bool IsNull(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  int64_t Int(int column) const { return sqlite3_column_int64(statement_, column); }
  std::optional<int64_t> MaybeInt(int column) const {
    if (IsNull(column)) return std::nullopt;
    return Int(column);
  }
  std::string_view Text(int column) const;

  uint64_t row_count() const { return row_count_; }
  /// Why the walk ended early; empty when it did not.
  const std::string& failure() const { return failure_; }

 private:
  sqlite3_stmt* statement_ = nullptr;
  uint64_t row_count_ = 0;
  uint64_t max_rows_ = 0;
  std::string failure_;
};

}  // namespace lockstep::ingest::nsight
