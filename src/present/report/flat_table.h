#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "analysis/analysis_result.h"
#include "base/cell.h"
#include "model/run.h"

namespace lockstep::report {

/// A table as JSON and CSV show it: the same names and order in both. docs/json.md says what they mean.
struct FlatTable {
  std::string_view name;  ///< Key under `data`, and the CSV file's name without ".csv".
  std::string_view pass;  ///< Pass that fills it; when it did not run, the table is null and has no CSV file.
  std::vector<std::string_view> columns;
  size_t row_count = 0;
  /// Appends the row's cells, as many as there are columns. Cost: O(columns).
  std::function<void(size_t row, std::vector<Cell>* cells)> fill;
};

/// Every table that a pass declares, in registry order. They borrow their arguments.
std::vector<FlatTable> FlatTables(const model::Run& run, const analysis::AnalysisResult& result);

}  // namespace lockstep::report
