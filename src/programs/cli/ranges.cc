#include "programs/cli/ranges.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <optional>
#include <string_view>

#include "programs/cli/run_input.h"

namespace lockstep::cli {
namespace {

std::optional<int64_t> UnsignedNumber(std::string_view text) {
  int64_t value = 0;
  if (text.empty() || text.front() == '-') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Unit {
  std::string_view name;
  int64_t ns;
};
constexpr Unit kUnits[] = {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}, {"m", 60'000'000'000}};

/// `digits` after the point, as nanoseconds of a unit of `unit_ns`.
std::optional<int64_t> Fraction(std::string_view digits, int64_t unit_ns) {
  int64_t ns = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    // 2m has no decimal unit below it: 60e9 / 10 is whole for nine digits all the same.
    unit_ns /= 10;
    ns += (c - '0') * unit_ns;
  }
  return ns;
}

}  // namespace

Result<std::vector<std::pair<int64_t, int64_t>>> ParseRanges(const std::string& text, const char* what) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  const auto wrong = [&](std::string_view part) {
    return Misuse(fmt::format("{}: '{}' is not a number or range; write it as 0-3,7", what, part));
  };
  std::string_view rest = text;
  while (true) {
    const size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const size_t dash = part.find('-');
    const auto first = UnsignedNumber(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : UnsignedNumber(part.substr(dash + 1));
    if (!first || !last || *first > *last) return wrong(part);
    ranges.emplace_back(*first, *last);
    if (comma == std::string_view::npos) return ranges;
    rest.remove_prefix(comma + 1);
  }
}

Result<int64_t> ParseTime(const std::string& text, const char* what) {
  const Error wrong =
      Misuse(fmt::format("{}: '{}' is not a time; write it with its unit, as 1.5s, 200ms, 30us, 2m", what, text));
  const size_t number_end = text.find_first_not_of("0123456789.");
  if (number_end == 0 || number_end == std::string::npos) return wrong;
  const std::string_view number = std::string_view(text).substr(0, number_end);
  const std::string_view unit_name = std::string_view(text).substr(number_end);
  for (const Unit& unit : kUnits) {
    if (unit.name != unit_name) continue;
    const size_t point = number.find('.');
    const auto whole = UnsignedNumber(number.substr(0, point));
    const auto part =
        point == std::string_view::npos ? std::optional<int64_t>(0) : Fraction(number.substr(point + 1), unit.ns);
    if (!whole || !part || *whole > std::numeric_limits<int64_t>::max() / 4 / unit.ns) return wrong;
    return *whole * unit.ns + *part;
  }
  return wrong;
}

}  // namespace lockstep::cli
