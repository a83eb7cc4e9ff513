#include "present/report/format.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>
#include <string_view>

namespace lockstep::report {
namespace {

constexpr std::string_view kAbsent = "-";

struct Unit {
  double size;
  std::string_view name;
};

std::string ThreeDigits(double value) {
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

// `units` ascending; the largest whose rounded value is at least one is taken. Values of the first unit are whole
// numbers.
std::string WithUnit(double value, std::span<const Unit> units) {
  const double magnitude = std::fabs(value);
  size_t chosen = 0;
  while (chosen + 1 < units.size()) {
    const double limit = units[chosen + 1].size / units[chosen].size;
    if (magnitude / units[chosen].size < limit - 0.5) break;
    ++chosen;
  }
  const char* sign = value < 0 ? "-" : "";
  if (chosen == 0) return fmt::format("{}{:.0f} {}", sign, magnitude, units[0].name);
  return fmt::format("{}{} {}", sign, ThreeDigits(magnitude / units[chosen].size), units[chosen].name);
}

constexpr std::array<Unit, 6> kTimeUnits = {
    {{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}, {600e9, "min"}, {36000e9, "h"}}};
constexpr std::array<Unit, 6> kByteUnits = {{{1, "B"},
                                             {1024, "KiB"},
                                             {1048576, "MiB"},
                                             {1073741824, "GiB"},
                                             {1099511627776, "TiB"},
                                             {1125899906842624, "PiB"}}};
constexpr std::array<Unit, 5> kRateUnits = {{{1, "B/s"}, {1e3, "kB/s"}, {1e6, "MB/s"}, {1e9, "GB/s"}, {1e12, "TB/s"}}};

}  // namespace

std::string FormatDuration(int64_t ns) {
  if (ns == 0) return "0";
  const double magnitude = std::fabs(static_cast<double>(ns));
  const char* sign = ns < 0 ? "-" : "";
  // Minutes, hours and days begin late (10 min, 10 h, 2 d), so they do not fit the rule of the other units.
  if (magnitude >= 172800e9) return fmt::format("{}{} d", sign, ThreeDigits(magnitude / 86400e9));
  if (magnitude >= kTimeUnits[5].size) return fmt::format("{}{} h", sign, ThreeDigits(magnitude / 3600e9));
  if (magnitude >= kTimeUnits[4].size) return fmt::format("{}{} min", sign, ThreeDigits(magnitude / 60e9));
  return WithUnit(static_cast<double>(ns), std::span(kTimeUnits).first(4));
}

std::string FormatDuration(std::optional<int64_t> ns) { return ns ? FormatDuration(*ns) : std::string(kAbsent); }

std::string FormatMeanDuration(double ns) { return FormatDuration(static_cast<int64_t>(std::llround(ns))); }

std::string FormatBytes(int64_t bytes) { return bytes == 0 ? "0" : WithUnit(static_cast<double>(bytes), kByteUnits); }

std::string FormatBytes(std::optional<int64_t> bytes) { return bytes ? FormatBytes(*bytes) : std::string(kAbsent); }

std::string FormatRate(std::optional<double> bytes_per_s) {
  if (!bytes_per_s || !std::isfinite(*bytes_per_s)) return std::string(kAbsent);
  return WithUnit(*bytes_per_s, kRateUnits);
}

std::string FormatCount(uint64_t count) {
  std::string digits = fmt::format("{}", count);
  for (size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string FormatPercent(std::optional<double> ratio) {
  if (!ratio || !std::isfinite(*ratio)) return std::string(kAbsent);
  const double percent = *ratio * 100;
  const double magnitude = std::fabs(percent);
  if (magnitude == 0) return "0 %";
  if (magnitude < 0.1) return "<0.1 %";
  if (magnitude < 9.95) return fmt::format("{:.1f} %", percent);
  return fmt::format("{:.0f} %", percent);
}

std::string FormatShare(int64_t part, int64_t whole) {
  if (whole <= 0) return std::string(kAbsent);
  return FormatPercent(static_cast<double>(part) / static_cast<double>(whole));
}

std::string FormatNumber(double value) {
  if (!std::isfinite(value)) return std::string(kAbsent);
  if (std::fabs(value) >= 1e6) return fmt::format("{:.3g}", value);
  return fmt::format("{}{}", value < 0 ? "-" : "", ThreeDigits(std::fabs(value)));
}

}  // namespace lockstep::report
