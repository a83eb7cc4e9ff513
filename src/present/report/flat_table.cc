#include "present/report/flat_table.h"

#include <string>
#include <utility>
#include <variant>

#include "analysis/pass_registry.h"

namespace lockstep::report {

FlatTable Flat(const analysis::Table& declared, const analysis::TableSource& source, analysis::ColumnPlace form) {
  const analysis::TableRows rows = declared.rows(source);
  FlatTable table{declared.name, declared.pass, {}, rows.count, {}, declared.place.json_path};
  std::vector<const analysis::TableColumn*> columns;
  for (const analysis::TableColumn& column : declared.columns) {
    if (!IsIn(column.place, form)) continue;
    table.columns.push_back(column.name);
    columns.push_back(&column);
  }
  table.fill = [source, rows, columns = std::move(columns)](size_t row, std::vector<Cell>* cells) {
    for (const analysis::TableColumn* column : columns) cells->push_back(column->value(source, rows[row]));
  };
  return table;
}

std::vector<FlatTable> FlatTables(const model::Run& run, const analysis::AnalysisResult& result,
                                  analysis::ColumnPlace form) {
  std::vector<FlatTable> tables;
  for (const analysis::Table* declared : analysis::Tables()) {
    FlatTable table = Flat(*declared, {run, result}, form);
    if (!table.columns.empty()) tables.push_back(std::move(table));
  }
  return tables;
}

void WriteRows(JsonDocument& json, const FlatTable& table) {
  const bool is_keyed = !table.json_path.empty() && !table.json_path.ends_with("[]");
  is_keyed ? json.StartObject() : json.StartArray();
  std::vector<Cell> cells;
  for (size_t r = 0; r < table.row_count; ++r) {
    cells.clear();
    table.fill(r, &cells);
    JsonRow row;
    if (is_keyed) json.Key(std::get<std::string>(cells.front()));
    for (size_t c = is_keyed ? 1 : 0; c < table.columns.size(); ++c) row.Key(table.columns[c]).Value(cells[c]);
    WriteRow(json, row);
  }
  is_keyed ? json.EndObject() : json.EndArray();
}

void WriteTablesWithin(JsonDocument& json, const model::Run& run, const analysis::AnalysisResult& result,
                       std::string_view json_path) {
  for (const FlatTable& table : FlatTables(run, result, analysis::ColumnPlace::kOnlyInJson)) {
    if (!table.json_path.starts_with(std::string(json_path) + ".")) continue;
    const std::string_view key = table.json_path.substr(json_path.size() + 1);
    json.Key(key.substr(0, key.find('[')));
    WriteRows(json, table);
  }
}

}  // namespace lockstep::report
