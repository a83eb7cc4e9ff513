#include "present/query/query_error.h"

#include <algorithm>

#include "base/ascii.h"
#include "present/query/functions.h"
#include "present/query/tables.h"
#include "present/report/utf8.h"

namespace lockstep::query {
namespace {

bool IsWordByte(char c) { return c == '_' || IsAlphanumeric(c); }

std::vector<const Table*> TablesMentioned(std::string_view sql) {
  std::vector<const Table*> tables;
  for (size_t i = 0; i < sql.size();) {
    size_t end = i;
    while (end < sql.size() && IsWordByte(sql[end])) ++end;
    if (const Table* table = end == i ? nullptr : FindTable(sql.substr(i, end - i))) tables.push_back(table);
    i = std::max(end, i + 1);
  }
  return tables;
}

std::vector<std::string> ColumnsKnown(std::string_view sql) {
  std::vector<const Table*> tables = TablesMentioned(sql);
  if (tables.empty()) {
    for (const auto& table : AllTables()) tables.push_back(table.get());
  }
  std::vector<std::string> names;
  for (const Table* table : tables) {
    for (const ColumnSpec& column : table->spec().columns) {
      if (std::find(names.begin(), names.end(), column.name) == names.end()) names.emplace_back(column.name);
    }
  }
  return names;
}

// What follows `prefix` at the beginning of `text`.
std::string After(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix ? std::string(text.substr(prefix.size())) : std::string();
}

}  // namespace

void NameTheUnknown(std::string_view sql, QueryError* error) {
  if (std::string name = After(error->message, "no such table: "); !name.empty()) {
    error->unknown_name = name;
    error->known = TableNames();
  } else if (name = After(error->message, "no such column: "); !name.empty()) {
    error->unknown_name = name.substr(name.rfind('.') == std::string::npos ? 0 : name.rfind('.') + 1);
    error->known = ColumnsKnown(sql);
  } else if (name = After(error->message, "no such function: "); !name.empty()) {
    error->unknown_name = name;
    for (const FunctionSpec& function : OwnFunctions()) error->known.emplace_back(function.name);
  }
}

std::string MarkedLine(std::string_view sql, size_t offset) {
  offset = std::min(offset, sql.size());
  size_t begin = sql.rfind('\n', offset == 0 ? 0 : offset - 1);
  begin = begin == std::string_view::npos || offset == 0 ? 0 : begin + 1;
  if (begin > offset) begin = offset;
  size_t end = std::min(sql.find('\n', offset), sql.size());
  constexpr size_t kAround = 60;
  if (offset - begin > kAround) begin = offset - kAround;
  if (end - offset > kAround) end = offset + kAround;
  const auto shown = [](std::string_view text) {
    std::string line(text);
    std::replace(line.begin(), line.end(), '\t', ' ');
    return report::Printable(line);
  };
  const std::string before = shown(sql.substr(begin, offset - begin));
  return before + shown(sql.substr(offset, end - offset)) + "\n" +
         std::string(static_cast<size_t>(report::DisplayWidth(before)), ' ') + "^";
}

}  // namespace lockstep::query
