#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/table.h"
#include "model/run.h"
#include "programs/python/column_builder.h"

namespace lockstep::python {

/// What a table's columns are.
struct TableSpec {
  std::string name;
  std::vector<ColumnSpec> columns;
  const analysis::Table* declared = nullptr;  ///< Its rows begin with those columns; lives as long as the program.
};

/// Every table that Python can ask for, with names, types, units and nulls as docs/json.md states them (a test holds
/// them against it): ranks, clocks, ledger, collective_members (present/report/run_tables.h), and those of passes.
const std::vector<TableSpec>& TableSpecs();

/// The spec of that name; null when there is none.
const TableSpec* FindTableSpec(std::string_view name);

/// The pass that fills a table; empty for ranks, clocks, findings and ledger, which are always there.
std::string_view PassOfTable(std::string_view name);

/// The table `name` of TableSpecs(), as typed columns: the rows of the command's JSON, in the same order. A table whose
/// pass did not run has no rows.
/// Cost: O(cells). Throws std::logic_error for a name that is none of TableSpecs().
Table BuildTable(std::string_view name, const model::Run& run, const analysis::AnalysisResult& result);

}  // namespace lockstep::python
