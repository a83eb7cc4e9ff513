#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "analysis/analysis_result.h"
#include "model/run.h"

namespace lockstep::report {

/// A list of numbers in a cell: an array in JSON, its text in CSV and SQL.
struct IntegerList {
  std::vector<int64_t> values;

  std::string Text() const;  ///< "[0,2,4]"
};

/// One value of a table; monostate = not measured (null in JSON, empty in CSV). Texts may hold any bytes.
using Cell = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, IntegerList>;

/// A cell of what may be absent.
template <typename T>
Cell OptionalCell(const std::optional<T>& value) {
  if (!value) return std::monostate{};
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    return static_cast<int64_t>(*value);
  } else {
    return Cell(*value);
  }
}
inline Cell TextCell(std::string_view text) { return std::string(text); }
/// Null when empty: for facts that a file may not state.
inline Cell TextOrNullCell(std::string_view text) {
  if (text.empty()) return std::monostate{};
  return std::string(text);
}

/// A table whose rows hold plain values: the same names and order in JSON and CSV. docs/json.md says what they mean.
struct FlatTable {
  std::string_view name;  ///< Key under `data`, and the CSV file's name without ".csv".
  std::string_view pass;  ///< Pass that fills it; when it did not run, the table is null and has no CSV file.
  std::vector<std::string_view> columns;
  size_t row_count = 0;
  /// Appends the row's cells, as many as there are columns. Cost: O(columns).
  std::function<void(size_t row, std::vector<Cell>* cells)> fill;
};

/// breakdown, steps, idle, idle_host, kernels, operators, memory, launch, queues, then DeclaredTables(), in this order.
/// They borrow their arguments.
std::vector<FlatTable> FlatTables(const model::Run& run, const analysis::AnalysisResult& result);

/// Device that a rank's own events ran on: its name where deviceProperties has it. Ordinal absent without device
/// events.
struct RankDevice {
  std::string name;  ///< Empty when unknown.
  std::vector<int32_t> ordinals;
};
RankDevice DeviceOf(const model::RankTrace& trace);

/// Facts of the job that are spread over its ranks.
struct JobFacts {
  size_t rank_count = 0;                    ///< Distinct ranks.
  size_t window_count = 0;                  ///< Distinct windows.
  std::vector<std::string> hosts;           ///< Distinct, sorted; unknown hosts are left out.
  std::optional<int32_t> world_size = {};   ///< Largest that any file states.
  std::vector<int32_t> missing_ranks = {};  ///< Below world_size and without a file; at most the first 1,000.
  size_t missing_rank_count = 0;
  uint64_t event_count = 0;
  std::string backend;  ///< Of the first rank that states one, or empty.
};
JobFacts FactsOf(const model::Run& run);

}  // namespace lockstep::report
