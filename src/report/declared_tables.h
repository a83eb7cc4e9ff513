#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/analysis_result.h"
#include "model/run.h"
#include "report/tables.h"

namespace lockstep::report {

enum class DeclaredType : uint8_t { kInteger, kReal, kText, kBoolean, kIntegers };

/// A column, declared once for JSON, CSV, SQL and their documents.
struct DeclaredColumn {
  std::string_view name;
  DeclaredType type = DeclaredType::kInteger;
  std::string_view unit;     ///< "ns", "bytes", "count", "0..1"; empty where it has none.
  std::string_view meaning;  ///< A sentence.
  std::string_view null;     ///< What null means; empty = never null.
  std::function<Cell(const model::Run&, const analysis::AnalysisResult&, size_t row)> value;
};

/// A table of plain rows, declared once.
struct DeclaredTable {
  std::string_view name;      ///< Key under `data`, and the CSV file's name without ".csv".
  std::string_view sql_name;  ///< Table of `lockstep query`; empty: of `lockstep analyze` alone, by an option of it.
  std::string_view sentence;  ///< What a row is, without a full stop.
  std::string_view pass;
  std::vector<DeclaredColumn> columns;
  std::function<size_t(const analysis::AnalysisResult&)> row_count;
};

/// Every declared table, in the order of the output.
const std::vector<DeclaredTable>& DeclaredTables();

/// The parts of DeclaredTables().
void DeclareGroupTables(std::vector<DeclaredTable>* tables);      ///< groups, group_operations.
void DeclareDdpTables(std::vector<DeclaredTable>* tables);        ///< ddp, ddp_buckets, fsdp.
void DeclarePipelineTables(std::vector<DeclaredTable>* tables);   ///< pipeline.
void DeclareMoeTables(std::vector<DeclaredTable>* tables);        ///< moe, moe_ranks.
void DeclareInferenceTables(std::vector<DeclaredTable>* tables);  ///< inference, inference_requests.
void DeclareRegionTables(std::vector<DeclaredTable>* tables);     ///< regions, region_balance.
void DeclareCounterTables(std::vector<DeclaredTable>* tables);    ///< counters, counter_balance.
void DeclareFabricTables(std::vector<DeclaredTable>* tables);     ///< fabric.
void DeclareFlopsTables(std::vector<DeclaredTable>* tables);      ///< flops, flops_by_operator.
/// kernel_launches, kernel_rooflines, kernel_sums.
void DeclareKernelProfileTables(std::vector<DeclaredTable>* tables);

/// A column of a table whose rows are `(result.*...)`: turns a getter of rows into one of cells.
template <typename Row>
struct RowColumn {
  std::string_view name;
  DeclaredType type = DeclaredType::kInteger;
  std::string_view unit;
  std::string_view meaning;
  std::string_view null;
  Cell (*value)(const model::Run&, const Row&);
};

/// A table over `rows(result)`.
template <typename Row>
DeclaredTable DeclareTable(std::string_view name, std::string_view sql_name, std::string_view sentence,
                           std::string_view pass, const std::vector<Row>& (*rows)(const analysis::AnalysisResult&),
                           std::vector<RowColumn<Row>> columns) {
  DeclaredTable table{name, sql_name, sentence, pass, {}, [rows](const auto& result) { return rows(result).size(); }};
  for (const RowColumn<Row>& column : columns) {
    table.columns.push_back({column.name, column.type, column.unit, column.meaning, column.null,
                             [rows, value = column.value](const model::Run& run, const analysis::AnalysisResult& result,
                                                          size_t row) { return value(run, rows(result)[row]); }});
  }
  return table;
}

/// Columns of rows with `rank_index`.
template <typename Row>
RowColumn<Row> RankColumn() {
  return {"rank",
          DeclaredType::kInteger,
          "",
          "Global rank of the process.",
          "",
          [](const model::Run& run, const Row& row) { return Cell(int64_t{run.ranks[row.rank_index].rank.value}); }};
}
template <typename Row>
RowColumn<Row> WindowColumn() {
  return {
      "window", DeclaredType::kInteger,
      "",       "0 for the first trace of this rank in time, 1 for the next, and so on.",
      "",       [](const model::Run& run, const Row& row) { return Cell(int64_t{run.ranks[row.rank_index].window}); }};
}
/// Column of rows with `group`.
template <typename Row>
RowColumn<Row> GroupColumn() {
  return {"group_number",
          DeclaredType::kInteger,
          "",
          "Number of the group in `groups`.",
          "",
          [](const model::Run&, const Row& row) { return Cell(uint64_t{row.group}); }};
}
/// Global rank of what lies at `rank_index` of the run; null without one.
inline Cell RankCell(const model::Run& run, std::optional<size_t> rank_index) {
  if (!rank_index) return std::monostate{};
  return Cell(int64_t{run.ranks[*rank_index].rank.value});
}

}  // namespace lockstep::report
