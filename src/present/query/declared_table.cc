#include <memory>

#include "analysis/pass_registry.h"
#include "analysis/table.h"
#include "base/cell.h"
#include "present/query/rank_fields.h"
#include "present/query/tables.h"

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

template <typename Wanted>
void AddTables(Wanted wanted, TableList* tables) {
  using Declared = RowTable<const void*, analysis::TableRows>;
  for (const analysis::Table* table : analysis::Tables()) {
    if (table->sql_name.empty() || !wanted(table->place.order)) continue;
    Declared::Parts parts{table->sql_name, table->sentence, table->pass.empty() ? "all" : table->pass, {}, {}};
    for (const analysis::TableColumn& column : table->columns) {
      if (IsIn(column.place, analysis::ColumnPlace::kOnlyInSql)) parts.fields.push_back(FieldOf(column));
    }
    parts.rows = [table](const Source& source) { return table->rows(source.result()); };
    if (table->in_rank_order) parts.sorted_by = {kWindowColumn, kRankColumn};
    tables->push_back(std::make_unique<Declared>(std::move(parts)));
  }
}

}  // namespace

void AddMeasuredTables(TableList* tables) {
  AddTables([](analysis::TableOrder order) { return order == analysis::TableOrder::kMeasured; }, tables);
}

void AddVerdictTables(TableList* tables) {
  AddTables([](analysis::TableOrder order) { return order != analysis::TableOrder::kMeasured; }, tables);
}

}  // namespace lockstep::query
