#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "programs/python/column_builder.h"

namespace lockstep::python {

/// What a table's columns are.
struct TableSpec {
  std::string name;
  std::vector<ColumnSpec> columns;
};

/// Every table that Python can ask for, with names, types, units and nulls as docs/json.md states them (a test holds
/// them against it): ranks, clocks, ledger, those that are declared (analysis/table.h); besides
/// collective_members, a row for each member of each collective.
const std::vector<TableSpec>& TableSpecs();

/// The spec of that name; null when there is none.
const TableSpec* FindTableSpec(std::string_view name);

}  // namespace lockstep::python
