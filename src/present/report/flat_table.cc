#include "present/report/flat_table.h"

#include <utility>

#include "analysis/pass_registry.h"
#include "analysis/table.h"

namespace lockstep::report {

std::vector<FlatTable> FlatTables(const model::Run& run, const analysis::AnalysisResult& result) {
  std::vector<FlatTable> tables;
  for (const analysis::Table* declared : analysis::Tables()) {
    FlatTable& table = tables.emplace_back(FlatTable{declared->name, declared->pass, {}, 0, {}});
    table.row_count = declared->row_count(result);
    std::vector<const analysis::TableColumn*> columns;
    for (const analysis::TableColumn& column : declared->columns) {
      if (column.place == analysis::ColumnPlace::kOnlyInSql) continue;
      table.columns.push_back(column.name);
      columns.push_back(&column);
    }
    table.fill = [&run, &result, columns = std::move(columns)](size_t row, std::vector<Cell>* cells) {
      for (const analysis::TableColumn* column : columns) cells->push_back(column->value(run, result, row));
    };
  }
  return tables;
}

}  // namespace lockstep::report
