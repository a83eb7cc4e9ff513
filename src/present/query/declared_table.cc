#include <memory>

#include "analysis/pass_registry.h"
#include "analysis/table.h"
#include "base/cell.h"
#include "present/query/rank_fields.h"
#include "present/query/tables.h"

namespace lockstep::query {
namespace {

ColumnType TypeOf(analysis::ColumnType type) {
  switch (type) {
    case analysis::ColumnType::kInteger: return ColumnType::kInteger;
    case analysis::ColumnType::kReal: return ColumnType::kReal;
    case analysis::ColumnType::kText: return ColumnType::kText;
    case analysis::ColumnType::kBoolean: return ColumnType::kBoolean;
    case analysis::ColumnType::kIntegers: return ColumnType::kJson;
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
  void operator()(const IntegerList& value) const { out.Copy(value.Text()); }
};

/// The rows of a declared table are known by their numbers.
struct RowNumbers {
  size_t count = 0;
  size_t size() const { return count; }
  size_t operator[](size_t row) const { return row; }
};

Field<size_t> FieldOf(const analysis::TableColumn& column) {
  Field<size_t> field{{column.name, TypeOf(column.type), column.unit, column.meaning, column.null},
                      [value = column.value](const Source& source, size_t row, CellOut& out) {
                        std::visit(CellWriter{out}, value(source.run(), source.result(), row));
                      }};
  if (column.is_key) {
    field.key = [value = column.value](const Source& source, size_t row) -> std::optional<int64_t> {
      const Cell cell = value(source.run(), source.result(), row);
      const int64_t* number = std::get_if<int64_t>(&cell);
      return number != nullptr ? std::optional(*number) : std::nullopt;
    };
  }
  return field;
}

}  // namespace

void AddDeclaredTables(TableList* tables) {
  using Declared = RowTable<size_t, RowNumbers>;
  for (const analysis::Table* table : analysis::Tables()) {
    if (table->sql_name.empty()) continue;
    Declared::Parts parts{table->sql_name, table->sentence, table->pass, {}, {}};
    for (const analysis::TableColumn& column : table->columns) {
      if (column.place != analysis::ColumnPlace::kNotInSql) parts.fields.push_back(FieldOf(column));
    }
    parts.rows = [table](const Source& source) { return RowNumbers{table->row_count(source.result())}; };
    if (table->in_rank_order) parts.sorted_by = {kWindowColumn, kRankColumn};
    tables->push_back(std::make_unique<Declared>(std::move(parts)));
  }
}

}  // namespace lockstep::query
