#include "present/query/tables.h"

#include <algorithm>

#include "present/query/event_table.h"

namespace lockstep::query {
namespace {

TableList MakeAll() {
  TableList tables;
  tables.push_back(MakeEventTable());
  tables.push_back(MakeKernelTable());
  tables.push_back(MakeRankTable());
  tables.push_back(MakeTrackTable());
  AddCollectiveTables(&tables);
  AddMeasuredTables(&tables);
  tables.push_back(MakeMemoryEventTable());
  tables.push_back(MakeCounterSampleTable());
  tables.push_back(MakeLinkedSpanTable());
  tables.push_back(MakeStageTable());
  tables.push_back(MakeStageFrontierTable());
  AddVerdictTables(&tables);
  tables.push_back(MakeLedgerTable());
  tables.push_back(MakeCatalogTable());
  return tables;
}

}  // namespace

const TableList& AllTables() {
  static const TableList tables = MakeAll();
  return tables;
}

const Table* FindTable(std::string_view name) {
  const std::string wanted(name);
  for (const auto& table : AllTables()) {
    if (sqlite3_stricmp(std::string(table->spec().name).c_str(), wanted.c_str()) == 0) return table.get();
  }
  return nullptr;
}

std::vector<std::string> TableNames() {
  std::vector<std::string> names;
  for (const auto& table : AllTables()) names.emplace_back(table->spec().name);
  return names;
}

PassesNeeded PassesFor(const std::vector<std::string>& table_names) {
  PassesNeeded needed;
  for (const std::string& name : table_names) {
    const Table* table = FindTable(name);
    if (table == nullptr || table->spec().pass.empty()) continue;
    if (table->spec().pass == "all") {
      needed.all = true;
    } else if (std::find(needed.names.begin(), needed.names.end(), table->spec().pass) == needed.names.end()) {
      needed.names.emplace_back(table->spec().pass);
    }
  }
  return needed;
}

}  // namespace lockstep::query
