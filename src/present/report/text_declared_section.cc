// The section of a pass that has none of its own: its declared tables as they are.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "analysis/pass_registry.h"
#include "analysis/table.h"
#include "present/report/format.h"
#include "present/report/text_page.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

/// "wait_ns" is "wait": the values have their unit.
std::string HeaderOf(const analysis::TableColumn& column) {
  std::string_view name = column.name;
  for (const std::string_view unit : {"_ns", "_bytes"}) {
    if (name.ends_with(unit)) name.remove_suffix(unit.size());
  }
  std::string header(name);
  std::replace(header.begin(), header.end(), '_', ' ');
  return header;
}

/// A value in the unit of its column.
struct ValueText {
  std::string_view unit;

  std::string operator()(std::monostate) const { return "-"; }
  std::string operator()(bool value) const { return value ? "yes" : "no"; }
  std::string operator()(int64_t value) const {
    if (unit == "ns") return FormatDuration(value);
    if (unit == "bytes") return FormatBytes(value);
    return unit == "count" ? FormatCount(static_cast<uint64_t>(std::max<int64_t>(value, 0))) : fmt::format("{}", value);
  }
  std::string operator()(uint64_t value) const { return (*this)(static_cast<int64_t>(value)); }
  std::string operator()(double value) const {
    if (unit == "ns") return FormatMeanDuration(value);
    if (unit == "bytes/s") return FormatRate(value);
    return unit == "0..1" ? FormatPercent(value) : FormatNumber(value);
  }
  std::string operator()(const std::string& value) const { return Printable(value); }
  std::string operator()(const NestedCell& value) const { return value.Text(); }
};

void WriteTable(const TextPage& page, const analysis::Table& table) {
  std::string title(table.name);
  std::transform(title.begin(), title.end(), title.begin(), [](char c) { return c == '_' ? ' ' : std::toupper(c); });
  page.Heading(title, table.sentence);
  std::vector<const analysis::TableColumn*> columns;
  std::vector<TableColumn> heads;
  const analysis::TableColumn* rank = nullptr;
  for (const analysis::TableColumn& column : table.columns) {
    if (!IsIn(column.place, analysis::ColumnPlace::kOnlyInCsv)) continue;
    if (column.name == "rank") rank = &column;
    const bool is_text = column.type == analysis::ColumnType::kText;
    const bool has_flexible = std::any_of(heads.begin(), heads.end(), [](const auto& head) { return head.flexible; });
    // Those to the right are the first to go where room is short.
    heads.push_back({HeaderOf(column), is_text ? Align::kLeft : Align::kRight, is_text && !has_flexible,
                     std::max(0, static_cast<int>(columns.size()) - 3)});
    columns.push_back(&column);
  }
  TextTable text(std::move(heads));
  size_t row_count = 0;
  const analysis::TableRows rows = table.rows({page.run, page.result});
  for (size_t i = 0; i < rows.size(); ++i) {
    const void* row = rows[i];
    if (rank != nullptr && page.options.rank &&
        rank->value({page.run, page.result}, row) != Cell(int64_t{*page.options.rank})) {
      continue;
    }
    if (++row_count > page.options.top) continue;
    std::vector<TableCell> cells;
    for (const analysis::TableColumn* column : columns) {
      cells.emplace_back(std::visit(ValueText{column->unit}, column->value({page.run, page.result}, row)));
    }
    text.AddRow(std::move(cells));
  }
  if (row_count == 0) {
    page.Paragraph("No rows.");
  } else {
    page.Write(text, row_count);
  }
}

}  // namespace

void WriteDeclaredSection(const TextPage& page, std::string_view pass) {
  for (const analysis::Table* table : analysis::Tables()) {
    if (table->pass == pass) WriteTable(page, *table);
  }
}

}  // namespace lockstep::report
