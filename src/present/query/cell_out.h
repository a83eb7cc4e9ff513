#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::query {

/// Where a table puts the value of one cell. One call each time; none = NULL.
class CellOut {
 public:
  explicit CellOut(sqlite3_context* context) : context_(context) {}

  void Null() { sqlite3_result_null(context_); }
  void Int(int64_t value) { sqlite3_result_int64(context_, value); }
  void Count(uint64_t value) { sqlite3_result_int64(context_, static_cast<int64_t>(value)); }
  void Bool(bool value) { sqlite3_result_int(context_, value ? 1 : 0); }
  void Real(double value) { sqlite3_result_double(context_, value); }  // NaN becomes NULL
  /// Text that lives at least as long as the tables: not copied.
  void Static(std::string_view text) { Text(text, SQLITE_STATIC); }
  /// Text that is copied.
  void Copy(std::string_view text) { Text(text, SQLITE_TRANSIENT); }
  /// NULL when empty: for facts that a file may not state.
  void StaticOrNull(std::string_view text) { text.empty() ? Null() : Static(text); }
  template <typename T>
  void Optional(const std::optional<T>& value) {
    if (!value) return Null();
    if constexpr (std::is_floating_point_v<T>) {
      Real(*value);
    } else {
      Int(static_cast<int64_t>(*value));
    }
  }

 private:
  void Text(std::string_view text, sqlite3_destructor_type lifetime) {
    // A null pointer would be NULL, not the empty text.
    sqlite3_result_text64(context_, text.data() == nullptr ? "" : text.data(), text.size(), lifetime, SQLITE_UTF8);
  }

  sqlite3_context* context_;
};

}  // namespace lockstep::query
