#include "present/query/describe.h"

#include <fmt/format.h>

#include "present/query/functions.h"
#include "present/query/tables.h"
#include "present/report/text_table.h"

namespace lockstep::query {
namespace {

// Text for a terminal: the marks of Markdown code go.
std::string Plain(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (c != '`') plain += c;
  }
  return plain;
}

// "breakdown" -> "pass breakdown".
std::string PassText(const TableSpec& spec) {
  if (spec.pass.empty()) return "";
  return spec.pass == "all" ? "every pass" : fmt::format("pass {}", spec.pass);
}

}  // namespace

void WriteTableList(std::ostream& out, int width) {
  out << "Tables (lockstep query --describe TABLE has the columns):\n";
  for (const auto& table : AllTables()) {
    report::WriteWrapped(table->spec().sentence, fmt::format("  {:<22}", table->spec().name), std::string(24, ' '),
                         width, out);
  }
  out << "\nFunctions beside SQLite's own:\n";
  for (const FunctionSpec& function : OwnFunctions()) {
    const std::string call = fmt::format("{}{}", function.name, function.arguments);
    report::WriteWrapped(Plain(fmt::format("{}{}", function.is_aggregate ? "Aggregate. " : "", function.sentence)),
                         fmt::format("  {:<22}", call.size() > 21 ? call + "  " : call), std::string(24, ' '), width,
                         out);
  }
}

void WriteTableDescription(const TableSpec& spec, int width, std::ostream& out) {
  out << spec.name << ": " << spec.sentence << ".\n";
  if (!spec.pass.empty()) out << "Runs: " << PassText(spec) << ".\n";
  out << '\n';
  for (const ColumnSpec& column : spec.columns) {
    std::string text = Plain(column.meaning);
    if (!column.null.empty()) text += fmt::format(" NULL: {}.", Plain(column.null));
    const std::string unit = column.unit.empty() ? "" : fmt::format(", {}", column.unit);
    out << fmt::format("  {}  ({}{})\n", column.name, ShownTypeName(column.type), unit);
    report::WriteWrapped(text, "      ", "      ", width, out);
  }
}

void WriteReference(std::ostream& out) {
  for (const auto& table : AllTables()) {
    const TableSpec& spec = table->spec();
    out << fmt::format("### `{}`\n\n{}.", spec.name, spec.sentence);
    if (!spec.pass.empty()) out << fmt::format(" Runs: {}.", PassText(spec));
    out << "\n\n| column | type | unit | meaning | NULL |\n|---|---|---|---|---|\n";
    for (const ColumnSpec& column : spec.columns) {
      out << fmt::format("| `{}` | {} | {} | {} | {} |\n", column.name, ShownTypeName(column.type), column.unit,
                         column.meaning, column.null);
    }
    out << '\n';
  }
  out << "### Functions\n\n| function | | meaning |\n|---|---|---|\n";
  for (const FunctionSpec& function : OwnFunctions()) {
    out << fmt::format("| `{}{}` | {} | {} |\n", function.name, function.arguments,
                       function.is_aggregate ? "aggregate" : "", function.sentence);
  }
}

}  // namespace lockstep::query
