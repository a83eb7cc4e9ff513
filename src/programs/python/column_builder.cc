#include "programs/python/column_builder.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>
#include <variant>

#include "base/cell.h"
#include "present/report/utf8.h"

namespace lockstep::python {
namespace {

/// What an array that was built owns.
struct Storage {
  std::vector<uint8_t> bytes;
  std::vector<int64_t> integers;
  std::vector<double> doubles;
  std::vector<int64_t> offsets;
  std::vector<uint8_t> is_null;
};

}  // namespace

ColumnBuilder::ColumnBuilder(ColumnSpec spec) : spec_(std::move(spec)) {
  if (spec_.kind == Kind::kText || spec_.kind == Kind::kList) offsets_.push_back(0);
  for (const ColumnSpec& child : spec_.children) children_.emplace_back(child);
}

void ColumnBuilder::Mark(bool is_null) {
  ++length_;
  null_count_ += is_null ? 1 : 0;
  if (spec_.nullable) is_null_.push_back(is_null ? 1 : 0);
}

void ColumnBuilder::Null() {
  if (!spec_.nullable) throw std::logic_error("a null in column '" + spec_.name + "', which is declared without");
  Blank();
}

void ColumnBuilder::Blank() {
  switch (spec_.kind) {
    case Kind::kBool: bytes_.push_back(0); break;
    case Kind::kFloat64: doubles_.push_back(std::numeric_limits<double>::quiet_NaN()); break;
    case Kind::kText: offsets_.push_back(static_cast<int64_t>(bytes_.size())); break;
    case Kind::kList: offsets_.push_back(offsets_.back()); break;
    case Kind::kStruct:
      for (ColumnBuilder& child : children_) child.Blank();
      break;
    default: integers_.push_back(0);
  }
  Mark(spec_.nullable);
}

void ColumnBuilder::Bool(bool value) {
  bytes_.push_back(value ? 1 : 0);
  Mark(false);
}

void ColumnBuilder::Int(int64_t value) {
  integers_.push_back(value);
  Mark(false);
}

void ColumnBuilder::Double(double value) {
  if (!std::isfinite(value)) return Null();
  doubles_.push_back(value);
  Mark(false);
}

void ColumnBuilder::Text(std::string_view value) {
  const std::string valid = report::ValidUtf8(value);
  bytes_.insert(bytes_.end(), valid.begin(), valid.end());
  offsets_.push_back(static_cast<int64_t>(bytes_.size()));
  Mark(false);
}

void ColumnBuilder::Append(const Cell& cell) {
  struct Visitor {
    ColumnBuilder& column;
    void operator()(std::monostate) const { column.Null(); }
    void operator()(bool value) const { column.Bool(value); }
    void operator()(int64_t value) const { column.Int(value); }
    void operator()(uint64_t value) const { column.Int(static_cast<int64_t>(value)); }
    void operator()(double value) const { column.Double(value); }
    void operator()(const std::string& value) const { column.Text(value); }
    void operator()(const NestedCell& value) const {
      for (size_t i = 0; i < value.members.size(); ++i)
        column.child(value.is_list ? 0 : i).Append(value.members[i].value);
      column.End();
    }
  };
  std::visit(Visitor{*this}, cell);
}

void ColumnBuilder::End() {
  if (spec_.kind == Kind::kList) offsets_.push_back(static_cast<int64_t>(children_[0].length()));
  Mark(false);
}

Field ColumnBuilder::Finish() && {
  auto storage = std::make_shared<Storage>();
  storage->bytes = std::move(bytes_);
  storage->integers = std::move(integers_);
  storage->doubles = std::move(doubles_);
  storage->offsets = std::move(offsets_);
  storage->is_null = std::move(is_null_);

  auto array = std::make_shared<Array>();
  array->kind = spec_.kind;
  array->length = length_;
  array->null_count = null_count_;
  switch (spec_.kind) {
    case Kind::kBool:
    case Kind::kText: array->data = storage->bytes.data(); break;
    case Kind::kFloat64: array->data = storage->doubles.data(); break;
    case Kind::kList:
    case Kind::kStruct: break;
    default: array->data = storage->integers.data();
  }
  if (!storage->offsets.empty()) array->offsets = storage->offsets.data();
  if (spec_.nullable) array->is_null = storage->is_null.data();
  for (ColumnBuilder& child : children_) array->children.push_back(std::move(child).Finish());
  array->owner = std::move(storage);
  return {.name = spec_.name, .unit = spec_.unit, .nullable = spec_.nullable, .values = std::move(array)};
}

TableBuilder::TableBuilder(std::string name, const std::vector<ColumnSpec>& specs) : name_(std::move(name)) {
  for (const ColumnSpec& spec : specs) columns_.emplace_back(spec);
}

Table TableBuilder::Finish() && {
  Table table;
  table.name = std::move(name_);
  table.row_count = columns_.empty() ? 0 : columns_[0].length();
  for (ColumnBuilder& column : columns_) table.columns.push_back(std::move(column).Finish());
  return table;
}

}  // namespace lockstep::python
