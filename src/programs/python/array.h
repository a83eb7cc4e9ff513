#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::python {

/// How the values of a column lie in memory.
enum class Kind : uint8_t {
  kBool,   ///< One byte a value, 0 or 1.
  kInt16,  ///< Fixed-width integers ...
  kInt32,  ///< ... of the machine's byte order.
  kInt64,
  kUint32,
  kFloat64,     ///< NaN where the value is null.
  kText,        ///< UTF-8, as offsets into one block.
  kCategory8,   ///< int8_t codes into `dictionary`.
  kCategory32,  ///< int32_t codes into `dictionary`.
  kList,        ///< Offsets into one child.
  kStruct,      ///< Children of the same length.
};
/// "bool", "int64", "float64", "text", "category", "list", "struct", ...
const char* KindName(Kind kind);
/// Bytes of one value of a fixed-width kind; 0 for kText, kList and kStruct.
size_t WidthOf(Kind kind);

struct Field;

/// Values of one column, immutable. The pointers stay valid as long as `owner` does: it is the storage itself, or the
/// run whose columns are looked at (then nothing was copied).
struct Array {
  Kind kind = Kind::kInt64;
  size_t length = 0;
  std::shared_ptr<const void> owner;
  const void* data = nullptr;        ///< Fixed-width kinds: `length` values; kText: the bytes; else null.
  const int64_t* offsets = nullptr;  ///< kText and kList: length + 1 of them, from 0 upwards.
  const uint8_t* is_null = nullptr;  ///< `length` bytes, 1 = null; null pointer: the column can hold no null.
  size_t null_count = 0;
  std::vector<Field> children;              ///< kList: one; kStruct: its fields.
  std::shared_ptr<const Array> dictionary;  ///< Category kinds: the texts that codes stand for.

  bool IsNull(size_t row) const { return is_null != nullptr && is_null[row] != 0; }
  template <typename T>
  const T& Value(size_t row) const {
    return static_cast<const T*>(data)[row];
  }
  /// kText only.
  std::string_view Text(size_t row) const {
    return {static_cast<const char*>(data) + offsets[row], static_cast<size_t>(offsets[row + 1] - offsets[row])};
  }
};

/// A named column.
struct Field {
  std::string name;
  std::string unit;  ///< "ns", "bytes", "bytes/s", "ratio", "count", "ns since epoch", ...; empty: none.
  bool nullable = false;
  std::shared_ptr<const Array> values;
};

/// Columns of one length.
struct Table {
  std::string name;
  size_t row_count = 0;
  std::vector<Field> columns;

  /// Null when there is no such column.
  const Field* Find(std::string_view column) const;
};

}  // namespace lockstep::python
