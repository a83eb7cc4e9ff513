#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/cell.h"
#include "programs/python/array.h"

namespace lockstep::python {

/// What a column is, whatever its data: declared, so that types do not depend on what a run happens to hold.
struct ColumnSpec {
  std::string name;
  Kind kind = Kind::kInt64;
  std::string unit = {};
  bool nullable = false;
  std::vector<ColumnSpec> children = {};  ///< kList: one, named "item"; kStruct: its fields.
};

/// Collects the values of one column. Kinds: kBool, kInt64, kFloat64, kText, kList, kStruct.
class ColumnBuilder {
 public:
  explicit ColumnBuilder(ColumnSpec spec);

  /// Throws std::logic_error where the column was declared to hold no null: a mistake of ours, never of a file.
  void Null();
  void Bool(bool value);
  void Int(int64_t value);
  /// A value that is not finite is null, as in the JSON.
  void Double(double value);
  /// Bytes that are not UTF-8 become U+FFFD.
  void Text(std::string_view value);
  void Append(const Cell& cell);
  /// kList: ends the list to which the child's values since the last call belong. kStruct: ends a struct whose fields
  /// have been given to the children.
  void End();
  ColumnBuilder& child(size_t i) { return children_[i]; }

  const ColumnSpec& spec() const { return spec_; }
  size_t length() const { return length_; }
  /// Nothing may be added afterwards.
  Field Finish() &&;

 private:
  /// A value for a null's place, which is never read.
  void Blank();
  void Mark(bool is_null);

  ColumnSpec spec_;
  size_t length_ = 0;
  size_t null_count_ = 0;
  std::vector<uint8_t> bytes_;  ///< kBool values, kText characters.
  std::vector<int64_t> integers_;
  std::vector<double> doubles_;
  std::vector<int64_t> offsets_;
  std::vector<uint8_t> is_null_;
  std::vector<ColumnBuilder> children_;
};

/// Builders for all columns of a table.
class TableBuilder {
 public:
  TableBuilder(std::string name, const std::vector<ColumnSpec>& specs);
  ColumnBuilder& operator[](size_t i) { return columns_[i]; }
  size_t size() const { return columns_.size(); }
  Table Finish() &&;

 private:
  std::string name_;
  std::vector<ColumnBuilder> columns_;
};

}  // namespace lockstep::python
