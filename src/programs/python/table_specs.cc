#include "programs/python/table_specs.h"

#include <stdexcept>
#include <utility>

#include "analysis/pass_registry.h"
#include "analysis/table.h"
#include "base/cell.h"
#include "present/report/flat_table.h"
#include "present/report/run_tables.h"

namespace lockstep::python {
namespace {

Kind KindOf(analysis::ColumnType type) {
  switch (type) {
    case analysis::ColumnType::kReal: return Kind::kFloat64;
    case analysis::ColumnType::kText: return Kind::kText;
    case analysis::ColumnType::kBoolean: return Kind::kBool;
    case analysis::ColumnType::kObject: return Kind::kStruct;
    case analysis::ColumnType::kInteger: break;
  }
  return Kind::kInt64;
}

ColumnSpec SpecOf(const analysis::TableColumn& column) {
  ColumnSpec spec{std::string(column.name), KindOf(column.type), std::string(column.unit), !column.null.empty()};
  for (const analysis::TableColumn& field : column.fields) spec.children.push_back(SpecOf(field));
  if (!column.is_list) return spec;
  ColumnSpec list{spec.name, Kind::kList, spec.unit};
  spec.name = "item";
  list.children.push_back(std::move(spec));
  return list;
}

TableSpec SpecOf(std::string_view name, const analysis::Table& table) {
  TableSpec spec{std::string(name), {}, &table};
  for (const analysis::TableColumn& column : table.columns) {
    // The clock is a table of its own.
    const bool is_shown = IsIn(column.place, analysis::ColumnPlace::kOnlyInJson) && column.name != "clock";
    if (is_shown) spec.columns.push_back(SpecOf(column));
  }
  return spec;
}

}  // namespace

const std::vector<TableSpec>& TableSpecs() {
  static const std::vector<TableSpec> kSpecs = [] {
    std::vector<TableSpec> specs = {SpecOf("ranks", report::RankTable()), SpecOf("clocks", report::ClockTable()),
                                    SpecOf("ledger", report::LedgerTable()),
                                    SpecOf("collective_members", report::MemberTable())};
    for (const analysis::Table* table : analysis::Tables()) {
      // What lies in an object of others is a part of that, and what a run alone does not have is no table of it.
      const bool is_part = table->place.json_path.find('.') != std::string::npos;
      const analysis::Pass* pass = analysis::FindPass(table->pass);
      if (is_part || (pass != nullptr && pass->info.kind == analysis::PassKind::kOnRequest)) continue;
      specs.push_back(SpecOf(table->name, *table));
    }
    return specs;
  }();
  return kSpecs;
}

const TableSpec* FindTableSpec(std::string_view name) {
  for (const TableSpec& spec : TableSpecs()) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

std::string_view PassOfTable(std::string_view name) {
  const TableSpec* spec = FindTableSpec(name);
  return spec != nullptr ? spec->declared->pass : std::string_view();
}

Table BuildTable(std::string_view name, const model::Run& run, const analysis::AnalysisResult& result) {
  const TableSpec* spec = FindTableSpec(name);
  if (spec == nullptr) throw std::logic_error("no table is named '" + std::string(name) + "'");
  TableBuilder table(spec->name, spec->columns);
  const report::FlatTable rows = report::Flat(*spec->declared, {run, result}, analysis::ColumnPlace::kOnlyInJson);
  std::vector<Cell> cells;
  for (size_t r = 0; r < rows.row_count; ++r) {
    cells.clear();
    rows.fill(r, &cells);
    for (size_t c = 0; c < table.size(); ++c) table[c].Append(cells[c]);
  }
  return std::move(table).Finish();
}

}  // namespace lockstep::python
