#include "present/query/column_spec.h"

namespace lockstep::query {

const char* SqlTypeName(ColumnType type) {
  switch (type) {
    case ColumnType::kInteger:
    case ColumnType::kBoolean: return "INTEGER";
    case ColumnType::kReal: return "REAL";
    case ColumnType::kText:
    case ColumnType::kJson: return "TEXT";
  }
  return "TEXT";
}

const char* ShownTypeName(ColumnType type) {
  switch (type) {
    case ColumnType::kInteger: return "integer";
    case ColumnType::kReal: return "number";
    case ColumnType::kText: return "text";
    case ColumnType::kBoolean: return "0 or 1";
    case ColumnType::kJson: return "JSON";
  }
  return "text";
}

}  // namespace lockstep::query
