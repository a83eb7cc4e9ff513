#pragma once

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "base/result.h"
#include "present/query/row_writer.h"
#include "present/query/sandbox.h"
#include "present/query/source.h"
#include "present/query/stop_sign.h"

namespace lockstep::query {

struct QueryLimits {
  std::optional<std::chrono::milliseconds> timeout;  ///< Of one query; absent = none.
  int64_t memory_bytes = int64_t{1} << 30;           ///< Of SQLite in this process: sorting, grouping, WITH tables.
};

/// Why a query has no result.
struct QueryError {
  enum class Kind : uint8_t {
    kStatement,  ///< The SQL is wrong or may not be run: the asker's to mend.
    kTimeout,
    kInterrupted,
    kMemory,
    kInternal,
  };
  Kind kind = Kind::kStatement;
  std::string message;
  std::optional<size_t> offset = {};    ///< Byte of the SQL that it is about.
  std::string unknown_name = {};        ///< A table, column or function that there is none of,
  std::vector<std::string> known = {};  ///< and the names there are.
};

struct QuerySummary {
  uint64_t row_count = 0;
};

/// SQLite over a Source. The SQL is taken as hostile: it can read the tables of --list and nothing else, write nothing,
/// open no file, and ends at its limits. Not thread-safe, but stop() may be set from anywhere.
/// The memory limit is SQLite's and holds for the whole process.
class Database {
 public:
  static Result<std::unique_ptr<Database>> Open(const QueryLimits& limits);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// Without running it, and without a source: the tables that one statement reads, or what is wrong with it.
  tl::expected<std::set<std::string>, QueryError> Inspect(std::string_view sql);

  /// What tables read from here on; must outlive this.
  void SetSource(const Source* source) { source_ = source; }

  /// One statement. Rows go to `writer` as they come; its End() is not called after an error.
  /// Not reached: with no source set, statements that read tables are an internal error.
  tl::expected<QuerySummary, QueryError> Run(std::string_view sql, RowWriter& writer);

  StopSign& stop() { return stop_; }

 private:
  using Statement = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)>;

  explicit Database(const QueryLimits& limits) : limits_(limits) {}
  tl::expected<Statement, QueryError> Prepare(std::string_view sql);
  QueryError ErrorOf(int code, std::string_view sql) const;
  void Arm();

  const QueryLimits limits_;
  sqlite3* connection_ = nullptr;
  const Source* source_ = nullptr;
  Usage usage_;
  StopSign stop_;
};

}  // namespace lockstep::query
