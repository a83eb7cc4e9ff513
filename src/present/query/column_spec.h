#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace lockstep::query {

enum class ColumnType : uint8_t {
  kInteger,
  kReal,
  kText,
  kBoolean,  ///< 0 or 1.
  kJson,     ///< Text that holds a JSON array; json_each() takes it apart.
};

/// "INTEGER", "REAL", "TEXT", "INTEGER", "TEXT": SQLite's name of the type.
const char* SqlTypeName(ColumnType type);
/// "integer", "number", "text", "0 or 1", "JSON": the name in documents and messages.
const char* ShownTypeName(ColumnType type);

/// A column, declared once: the virtual table, `--describe`, the table `catalog` and docs/query.md all come from this.
struct ColumnSpec {
  std::string_view name;
  ColumnType type = ColumnType::kInteger;
  std::string_view unit;     ///< "ns", "ns, aligned clock", "bytes", "count", "0..1"; empty where it has none.
  std::string_view meaning;  ///< A sentence.
  std::string_view null;     ///< What NULL means; empty = never NULL.
};

/// A table, declared once.
struct TableSpec {
  std::string_view name;
  std::string_view sentence;  ///< One line: what a row is.
  std::string_view pass;      ///< Pass that fills it: "all" = every pass; empty = aligned clocks are enough.
  std::vector<ColumnSpec> columns;
};

}  // namespace lockstep::query
