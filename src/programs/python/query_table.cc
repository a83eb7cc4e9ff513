#include "programs/python/query_table.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>
#include <utility>
#include <variant>

#include "base/cell.h"
#include "present/report/utf8.h"
#include "programs/python/column_builder.h"

namespace lockstep::python {
namespace {

std::string UnitOf(std::string_view name) {
  struct Ending {
    std::string_view text;
    const char* unit;
  };
  constexpr Ending kEndings[] = {
      {"_bytes_per_s", "bytes/s"}, {"_bytes", "bytes"}, {"_ns", "ns"}, {"_ratio", "0..1"}, {"_count", "count"}};
  for (const Ending& ending : kEndings) {
    if (name.ends_with(ending.text)) return ending.unit;
  }
  return {};
}

/// A number among texts, as SQLite would write it.
std::string AsText(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* number = std::get_if<int64_t>(&cell)) return fmt::format("{}", *number);
  if (const auto* number = std::get_if<double>(&cell)) return fmt::format("{}", *number);
  return {};
}

}  // namespace

void QueryTable::Begin(const std::vector<std::string>& columns) {
  for (std::string& name : query::DistinctNames(columns)) columns_.push_back({.name = report::ValidUtf8(name)});
}

void QueryTable::Row(const std::vector<Cell>& cells) {
  for (size_t i = 0; i < cells.size(); ++i) {
    Values& column = columns_[i];
    const Cell& cell = cells[i];
    const auto* real = std::get_if<double>(&cell);
    if (std::holds_alternative<std::monostate>(cell) || (real != nullptr && !std::isfinite(*real))) {
      column.has_null = true;
    } else if (std::holds_alternative<int64_t>(cell)) {
      column.has_integer = true;
    } else if (real != nullptr) {
      column.has_real = true;
    } else {
      column.has_text = true;
    }
    column.cells.push_back(cell);
  }
}

Table QueryTable::Finish() && {
  Table table;
  table.name = "query";
  for (Values& values : columns_) {
    const Kind kind = values.has_text      ? Kind::kText
                      : values.has_real    ? Kind::kFloat64
                      : values.has_integer ? Kind::kInt64
                                           : Kind::kText;
    ColumnBuilder column({values.name, kind, kind == Kind::kText ? "" : UnitOf(values.name), values.has_null});
    for (const Cell& cell : values.cells) {
      if (std::holds_alternative<std::monostate>(cell)) {
        column.Null();
      } else if (kind == Kind::kText) {
        column.Text(AsText(cell));
      } else if (const auto* number = std::get_if<int64_t>(&cell); number != nullptr && kind == Kind::kFloat64) {
        column.Double(static_cast<double>(*number));
      } else {
        column.Append(cell);
      }
    }
    table.row_count = values.cells.size();
    table.columns.push_back(std::move(column).Finish());
    values.cells.clear();
    values.cells.shrink_to_fit();
  }
  return table;
}

}  // namespace lockstep::python
