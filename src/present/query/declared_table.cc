#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "analysis/pass_registry.h"
#include "analysis/table.h"
#include "base/cell.h"
#include "present/query/row_table.h"
#include "present/query/tables.h"
#include "present/report/run_tables.h"

namespace lockstep::query {
namespace {

ColumnType TypeOf(const analysis::TableColumn& column) {
  if (column.is_list) return ColumnType::kJson;
  switch (column.type) {
    case analysis::ColumnType::kInteger: return ColumnType::kInteger;
    case analysis::ColumnType::kReal: return ColumnType::kReal;
    case analysis::ColumnType::kText: return ColumnType::kText;
    case analysis::ColumnType::kBoolean: return ColumnType::kBoolean;
    case analysis::ColumnType::kObject: return ColumnType::kJson;
  }
  return ColumnType::kText;
}

struct CellWriter {
  CellOut& out;
  void operator()(std::monostate) const { out.Null(); }
  void operator()(bool value) const { out.Bool(value); }
  void operator()(int64_t value) const { out.Int(value); }
  void operator()(uint64_t value) const { out.Count(value); }
  void operator()(double value) const { out.Real(value); }
  void operator()(const std::string& value) const { out.Copy(value); }
  void operator()(const NestedCell& value) const { out.Copy(value.Text()); }
};

Field<const void*> FieldOf(const analysis::TableColumn& column) {
  Field<const void*> field{{column.name, TypeOf(column), column.unit, column.meaning, column.null},
                           [value = column.value](const Source& source, const void* row, CellOut& out) {
                             std::visit(CellWriter{out}, value({source.run(), source.result()}, row));
                           }};
  if (column.is_key) {
    field.key = [value = column.value](const Source& source, const void* row) -> std::optional<int64_t> {
      const Cell cell = value({source.run(), source.result()}, row);
      const int64_t* number = std::get_if<int64_t>(&cell);
      return number != nullptr ? std::optional(*number) : std::nullopt;
    };
  }
  return field;
}

using Declared = RowTable<const void*, analysis::TableRows>;

std::unique_ptr<Declared> Make(const analysis::Table& table, std::string_view pass, std::vector<int> sorted_by,
                               std::function<analysis::TableRows(const Source&)> rows) {
  Declared::Parts parts{table.sql_name, table.sentence, pass, {}, std::move(rows), std::move(sorted_by)};
  for (const analysis::TableColumn& column : table.columns) {
    if (IsIn(column.place, analysis::ColumnPlace::kOnlyInSql)) parts.fields.push_back(FieldOf(column));
  }
  return std::make_unique<Declared>(std::move(parts));
}

std::unique_ptr<Declared> Make(const analysis::Table& table, std::string_view pass, std::vector<int> sorted_by) {
  return Make(table, pass, std::move(sorted_by), [&table](const Source& source) {
    return table.rows({source.run(), source.result()});
  });
}

template <typename Wanted>
void AddTables(Wanted wanted, TableList* tables) {
  for (const analysis::Table* table : analysis::Tables()) {
    if (table->sql_name.empty() || !wanted(table->place.order)) continue;
    const std::vector<int> sorted_by =
        table->in_rank_order ? std::vector{kWindowColumn, kRankColumn} : std::vector<int>();
    tables->push_back(Make(*table, table->pass.empty() ? "all" : table->pass, sorted_by));
  }
}

}  // namespace

void AddMeasuredTables(TableList* tables) {
  AddTables([](analysis::TableOrder order) { return order == analysis::TableOrder::kMeasured; }, tables);
}

void AddVerdictTables(TableList* tables) {
  AddTables([](analysis::TableOrder order) { return order != analysis::TableOrder::kMeasured; }, tables);
}

std::unique_ptr<Table> MakeRankTable() { return Make(report::RankTable(), "", {kWindowColumn, kRankColumn}); }

std::unique_ptr<Table> MakeLedgerTable() { return Make(report::LedgerTable(), "all", {}); }

void AddCollectiveTables(TableList* tables) {
  const analysis::Table& members = report::MemberTable();
  tables->push_back(
      Make(members, members.pass, {0}, [](const Source& source) { return analysis::RowsOf(source.members()); }));
  tables->push_back(Make(report::InstanceTable(), members.pass, {0}));
}

}  // namespace lockstep::query
