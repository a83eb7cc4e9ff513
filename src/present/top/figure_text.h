#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/utf8.h"

namespace lockstep::top {

/// A name that a node told, printable; "-" where it told none.
inline std::string OrDash(const std::string& text) { return text.empty() ? "-" : Printable(text); }

/// "61 W"; "-" where it is not known.
inline std::string RoundedText(const std::optional<double>& value, const char* unit) {
  return value ? fmt::format("{:.0f} {}", *value, unit) : "-";
}

/// A figure that counts something, such as bytes, for FormatBytes; unknown where it is none that can be shown whole.
inline std::optional<int64_t> WholeFigure(const std::optional<double>& value) {
  if (!value || !(*value >= 0) || !(*value < 9e18)) return std::nullopt;
  return static_cast<int64_t>(*value);
}

}  // namespace lockstep::top
