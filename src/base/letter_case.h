#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "base/ascii.h"

namespace lockstep {

/// `text` with ASCII's letters in lower case, whatever the locale; other bytes stay.
inline std::string Lowered(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), Lower);
  return lower;
}

/// Whether both are the same in lower case.
inline bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return Lower(x) == Lower(y); });
}

/// Whether `lower`, which has no capitals, stands in `text` in any case.
inline bool ContainsIgnoringCase(std::string_view text, std::string_view lower) {
  return std::search(text.begin(), text.end(), lower.begin(), lower.end(),
                     [](char a, char b) { return Lower(a) == b; }) != text.end();
}

}  // namespace lockstep
