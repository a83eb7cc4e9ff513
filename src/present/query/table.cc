#include "present/query/table.h"

#include <cmath>

namespace lockstep::query {
namespace {

// Beyond these a double is not an int64_t.
constexpr double kLimit = 9.2e18;

std::optional<int64_t> Rounded(sqlite3_value* value, double (*round)(double)) {
  switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER: return sqlite3_value_int64(value);
    case SQLITE_FLOAT: {
      const double number = round(sqlite3_value_double(value));
      if (!(std::fabs(number) < kLimit)) return std::nullopt;
      return static_cast<int64_t>(number);
    }
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<int64_t> BoundConstraint::integer() const {
  const std::optional<int64_t> low = floor();
  return low && low == ceil() ? low : std::nullopt;
}

std::optional<int64_t> BoundConstraint::floor() const {
  return Rounded(value, [](double x) { return std::floor(x); });
}

std::optional<int64_t> BoundConstraint::ceil() const {
  return Rounded(value, [](double x) { return std::ceil(x); });
}

std::optional<std::string_view> BoundConstraint::text() const {
  if (sqlite3_value_type(value) != SQLITE_TEXT) return std::nullopt;
  const auto* data = reinterpret_cast<const char*>(sqlite3_value_text(value));
  if (data == nullptr) return std::nullopt;
  return std::string_view(data, static_cast<size_t>(sqlite3_value_bytes(value)));
}

}  // namespace lockstep::query
