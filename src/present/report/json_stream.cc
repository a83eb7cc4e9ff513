#include "present/report/json_stream.h"

#include <string>
#include <variant>

namespace lockstep::report {

JsonRow& JsonRow::Value(const Cell& cell) {
  struct Visitor {
    JsonRow& row;
    void operator()(std::monostate) const { row.Null(); }
    void operator()(bool value) const { row.Bool(value); }
    void operator()(int64_t value) const { row.Int(value); }
    void operator()(uint64_t value) const { row.Uint(value); }
    void operator()(double value) const { row.Double(value); }
    void operator()(const std::string& value) const { row.Text(value); }
    void operator()(const IntegerList& value) const {
      row.StartArray();
      for (const int64_t item : value.values) row.Int(item);
      row.EndArray();
    }
  };
  std::visit(Visitor{*this}, cell);
  return *this;
}

}  // namespace lockstep::report
