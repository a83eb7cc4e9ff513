#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/table.h"
#include "base/cell.h"
#include "model/run.h"
#include "present/report/json_stream.h"

namespace lockstep::report {

/// A table as JSON or CSV shows it. docs/json.md says what its columns mean.
struct FlatTable {
  std::string_view name;  ///< Key under `data`, and the CSV file's name without ".csv".
  /// Pass that fills it; when it did not run, the table is null and has no CSV file. Empty: it is always there.
  std::string_view pass = {};
  std::vector<std::string_view> columns;
  size_t row_count = 0;
  /// Appends the row's cells, as many as there are columns. Cost: O(columns).
  std::function<void(size_t row, std::vector<Cell>* cells)> fill = {};
  std::string_view json_path = {};  ///< As analysis::TablePlace has it.
};

/// A declared table with the columns of `form`, one of kOnlyInJson and kOnlyInCsv. Borrows all of them.
FlatTable Flat(const analysis::Table& declared, const analysis::TableSource& source, analysis::ColumnPlace form);

/// Every table that a pass declares, in the order of analysis::Tables(), without those that have no columns there. They
/// borrow their arguments.
std::vector<FlatTable> FlatTables(const model::Run& run, const analysis::AnalysisResult& result,
                                  analysis::ColumnPlace form);

/// The rows as JSON: an array of objects, or where the path says so an object with a key for each row.
void WriteRows(JsonDocument& json, const FlatTable& table);
/// Those tables, each under its own key, whose JSON lies in the object `json_path` of `data`.
void WriteTablesWithin(JsonDocument& json, const model::Run& run, const analysis::AnalysisResult& result,
                       std::string_view json_path);

}  // namespace lockstep::report
