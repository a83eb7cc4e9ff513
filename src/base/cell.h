#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace lockstep {

/// A list of numbers in a cell: an array in JSON, its text in CSV and SQL.
struct IntegerList {
  std::vector<int64_t> values;

  std::string Text() const;  ///< "[0,2,4]"
  bool operator==(const IntegerList&) const = default;
};

/// One value of a table; monostate = not measured (null in JSON, empty in CSV). Texts may hold any bytes.
using Cell = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, IntegerList>;

/// A cell of what may be absent.
template <typename T>
Cell OptionalCell(const std::optional<T>& value) {
  if (!value) return std::monostate{};
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    return static_cast<int64_t>(*value);
  } else {
    return Cell(*value);
  }
}

}  // namespace lockstep
