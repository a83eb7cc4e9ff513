#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "ingest/nsight/database.h"

namespace lockstep::ingest::nsight {

/// Rows of text forms of an export as the tables that its SQLite form has, so that one reader reads all of them: in a
/// database of SQLite's own, which is held in memory while it is small and has no name on disk when it is not.
/// Tables and columns are made as rows name them. One thread.
class TableWriter {
 public:
  using Value = std::variant<std::monostate, int64_t, double, std::string_view>;
  using Cell = std::pair<std::string_view, Value>;

  static Result<std::unique_ptr<TableWriter>> Create(const std::string& display_name);
  ~TableWriter();
  TableWriter(const TableWriter&) = delete;
  TableWriter& operator=(const TableWriter&) = delete;

  /// Adds a row; cells that are not given are null. Out: whether it was taken: names are letters, digits and '_', and
  /// there is a bound on the number of tables and columns. Errors: kIo when there is no room.
  Result<bool> Add(std::string_view table, const std::vector<Cell>& cells);

  /// The database, as one that was opened. Nothing may be added after that.
  Result<std::unique_ptr<Database>> Finish();

 private:
  struct Table {
    std::string name;
    std::map<std::string, int, std::less<>> columns;  ///< By name in small letters: number of its parameter, from 1.
    sqlite3_stmt* insert = nullptr;
    bool is_rest_left_out = false;
  };
  explicit TableWriter(std::string display_name) : display_name_(std::move(display_name)) {}
  Result<Table*> TableOf(std::string_view name, const std::vector<Cell>& cells);
  Status Execute(const std::string& sql);
  Error WriteError() const;

  const std::string display_name_;
  sqlite3* connection_ = nullptr;
  std::map<std::string, Table, std::less<>> tables_;  // By name in small letters.
  std::string key_;
};

}  // namespace lockstep::ingest::nsight
