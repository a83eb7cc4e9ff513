#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "present/query/table.h"

namespace lockstep::query {

using TableList = std::vector<std::unique_ptr<Table>>;

/// Every table, in the order people read of them.
const TableList& AllTables();
/// Null when there is none of that name; letter case does not matter, as in SQL.
const Table* FindTable(std::string_view name);
std::vector<std::string> TableNames();

/// The parts of AllTables().
void AddCollectiveTables(TableList* tables);  ///< collectives, collective_instances.
void AddMeasuredTables(TableList* tables);    ///< Those declared (analysis/table.h) as TableOrder::kMeasured.
void AddVerdictTables(TableList* tables);     ///< The others that are declared.
std::unique_ptr<Table> MakeRankTable();
std::unique_ptr<Table> MakeTrackTable();
std::unique_ptr<Table> MakeMemoryEventTable();
std::unique_ptr<Table> MakeCounterSampleTable();
std::unique_ptr<Table> MakeLinkedSpanTable();
std::unique_ptr<Table> MakeStageTable();
std::unique_ptr<Table> MakeStageFrontierTable();
std::unique_ptr<Table> MakeLedgerTable();
std::unique_ptr<Table> MakeCatalogTable();

/// Passes that must have run for these tables: names for analysis::Analyze. `needs_all` for tables drawn from all.
struct PassesNeeded {
  bool all = false;
  std::vector<std::string> names;
};
PassesNeeded PassesFor(const std::vector<std::string>& table_names);

}  // namespace lockstep::query
