#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace lockstep {

struct NestedCell;
struct NestedMember;

/// One value of a table; monostate = not measured (null in JSON, empty in CSV). Texts may hold any bytes.
using Cell = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, NestedCell>;

/// A list of values, or an object of named ones, in a cell: the same in JSON, their JSON as text in CSV and SQL.
struct NestedCell {
  // Not in line: GCC 12 takes what it would inline of a Cell's end for a use of what was never set.
  explicit NestedCell(bool of_list = true);
  NestedCell(const NestedCell&);
  NestedCell(NestedCell&&) noexcept;
  NestedCell& operator=(const NestedCell&);
  NestedCell& operator=(NestedCell&&) noexcept;
  ~NestedCell();

  bool is_list;
  std::vector<NestedMember> members;

  void Add(Cell value, std::string_view name = {});
  std::string Text() const;  ///< "[0,2,4]"
  bool operator==(const NestedCell& other) const;
};

struct NestedMember {
  std::string_view name;  ///< Empty in a list; lives as long as the program.
  Cell value;

  bool operator==(const NestedMember&) const = default;
};

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
