#include "present/query/row_table.h"
#include "present/query/tables.h"

namespace lockstep::query {
namespace {

using Type = ColumnType;

struct CatalogRow {
  const TableSpec* table;
  const ColumnSpec* column;
};

const std::vector<CatalogRow>& CatalogRows() {
  static const std::vector<CatalogRow> rows = [] {
    std::vector<CatalogRow> made;
    for (const auto& table : AllTables()) {
      for (const ColumnSpec& column : table->spec().columns) made.push_back({&table->spec(), &column});
    }
    return made;
  }();
  return rows;
}

}  // namespace

std::unique_ptr<Table> MakeCatalogTable() {
  using Row = CatalogRow;
  return std::make_unique<RowTable<Row>>(RowTable<Row>::Parts{
      .name = "catalog",
      .sentence = "Every column of every table: its type, unit and meaning",
      .pass = "",
      .fields = {{{"table_name", Type::kText, "", "Table.", ""},
                  [](const Source&, const Row& row, CellOut& out) { out.Static(row.table->name); }},
                 {{"column_name", Type::kText, "", "Column.", ""},
                  [](const Source&, const Row& row, CellOut& out) { out.Static(row.column->name); }},
                 {{"type", Type::kText, "", "`integer`, `number`, `text`, `0 or 1`, `JSON`.", ""},
                  [](const Source&, const Row& row, CellOut& out) { out.Static(ShownTypeName(row.column->type)); }},
                 {{"unit", Type::kText, "", "Unit.", "it has none"},
                  [](const Source&, const Row& row, CellOut& out) { out.StaticOrNull(row.column->unit); }},
                 {{"meaning", Type::kText, "", "What it says.", ""},
                  [](const Source&, const Row& row, CellOut& out) { out.Static(row.column->meaning); }},
                 {{"null_meaning", Type::kText, "", "What NULL means there.", "never NULL"},
                  [](const Source&, const Row& row, CellOut& out) { out.StaticOrNull(row.column->null); }}},
      .rows = [](const Source&) { return std::span<const Row>(CatalogRows()); }});
}

}  // namespace lockstep::query
