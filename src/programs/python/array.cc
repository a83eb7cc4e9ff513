#include "programs/python/array.h"

namespace lockstep::python {

const char* KindName(Kind kind) {
  switch (kind) {
    case Kind::kBool: return "bool";
    case Kind::kInt16: return "int16";
    case Kind::kInt32: return "int32";
    case Kind::kInt64: return "int64";
    case Kind::kUint32: return "uint32";
    case Kind::kFloat64: return "float64";
    case Kind::kText: return "text";
    case Kind::kCategory8:
    case Kind::kCategory32: return "category";
    case Kind::kList: return "list";
    case Kind::kStruct: return "struct";
  }
  return "unknown";
}

size_t WidthOf(Kind kind) {
  switch (kind) {
    case Kind::kBool:
    case Kind::kCategory8: return 1;
    case Kind::kInt16: return 2;
    case Kind::kInt32:
    case Kind::kUint32:
    case Kind::kCategory32: return 4;
    case Kind::kInt64:
    case Kind::kFloat64: return 8;
    case Kind::kText:
    case Kind::kList:
    case Kind::kStruct: return 0;
  }
  return 0;
}

const Field* Table::Find(std::string_view column) const {
  for (const Field& field : columns) {
    if (field.name == column) return &field;
  }
  return nullptr;
}

}  // namespace lockstep::python
