#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "analysis/pass_registry.h"
#include "base/cell_json.h"
#include "base/json_writer.h"
#include "present/page/data_blocks.h"
#include "present/report/format.h"
#include "present/report/run_tables.h"

namespace lockstep::page {
namespace {

using analysis::ColumnType;
using analysis::Table;

/// Instants have more digits than a number of JavaScript's: those are texts.
class ExactJson : public JsonInMemory<ExactJson> {
 public:
  ExactJson& Int(int64_t value) {
    constexpr int64_t kMostExact = int64_t{1} << 53;
    if (value >= -kMostExact && value <= kMostExact) return JsonInMemory::Int(value);
    return Text(std::to_string(value));
  }
};

const char* TypeName(ColumnType type) {
  switch (type) {
    case ColumnType::kInteger: return "integer";
    case ColumnType::kReal: return "real";
    case ColumnType::kText: return "text";
    case ColumnType::kBoolean: return "boolean";
    case ColumnType::kObject: return "object";
  }
  return "text";
}

bool IsInJson(const analysis::TableColumn& column) { return IsIn(column.place, analysis::ColumnPlace::kOnlyInJson); }
bool IsInSql(const Table& table, const analysis::TableColumn& column) {
  return !table.sql_name.empty() && IsIn(column.place, analysis::ColumnPlace::kOnlyInSql);
}
bool IsHeld(const Table& table, const analysis::TableColumn& column) {
  return IsInJson(column) || IsInSql(table, column);
}

/// What a run itself has, and what the passes found.
std::vector<const Table*> DeclaredTables() {
  std::vector<const Table*> tables = {&report::RankTable()};
  tables.insert(tables.end(), analysis::Tables().begin(), analysis::Tables().end());
  tables.push_back(&report::LedgerTable());
  return tables;
}

size_t RowCount(const PageModel& model, const Table& table) { return table.rows({model.run(), model.result()}).size(); }

size_t RowsShown(const PageModel& model, const Table& table) {
  return std::min(RowCount(model, table), model.limits.table_rows);
}

}  // namespace

std::vector<const Table*> PlanTables(const PageModel& model, std::vector<Reduction>* reductions) {
  std::vector<const Table*> tables;
  std::vector<std::string_view> cut;
  for (const Table* table : DeclaredTables()) {
    if (!table->pass.empty() && !model.result().Has(table->pass)) continue;
    if (RowCount(model, *table) == 0 || std::ranges::none_of(table->columns, IsInJson)) continue;
    tables.push_back(table);
    if (RowsShown(model, *table) < RowCount(model, *table)) cut.push_back(table->name);
  }
  if (!cut.empty()) {
    reductions->push_back(
        {"tables", fmt::format("the view of all tables: the first {} rows of {}; --json and --csv have all",
                               report::FormatCount(model.limits.table_rows), fmt::join(cut, ", "))});
  }
  return tables;
}

std::string TableListJson(const PageModel& model, const std::vector<const Table*>& tables) {
  JsonWriter json;
  json.StartArray();
  for (const Table* table : tables) {
    json.StartObject().Key("name").Text(table->name).Key("sql_name").TextOrNull(table->sql_name);
    json.Key("sentence").Text(table->sentence);
    json.Key("json_path").Text(table->place.json_path).Key("row_count").Uint(RowCount(model, *table)).EndObject();
  }
  return json.EndArray().Take();
}

std::string TablesBytes(const PageModel& model, const std::vector<const Table*>& tables) {
  ExactJson json;
  json.StartObject().Key("tables").StartArray();
  for (const Table* table : tables) {
    json.StartObject().Key("name").Text(table->name).Key("columns").StartArray();
    for (const analysis::TableColumn& column : table->columns) {
      if (!IsHeld(*table, column)) continue;
      json.StartObject().Key("name").Text(column.name).Key("type").Text(TypeName(column.type));
      json.Key("is_list").Bool(column.is_list);
      json.Key("unit").Text(column.unit).Key("meaning").Text(column.meaning);
      json.Key("in_json").Bool(IsInJson(column)).Key("in_sql").Bool(IsInSql(*table, column)).EndObject();
    }
    json.EndArray().Key("rows").StartArray();
    const analysis::TableRows rows = table->rows({model.run(), model.result()});
    const size_t row_count = RowsShown(model, *table);
    for (size_t row = 0; row < row_count; ++row) {
      json.StartArray();
      for (const analysis::TableColumn& column : table->columns) {
        if (IsHeld(*table, column)) WriteCell(column.value({model.run(), model.result()}, rows[row]), &json);
      }
      json.EndArray();
    }
    json.EndArray().EndObject();
  }
  return json.EndArray().EndObject().Take();
}

}  // namespace lockstep::page
