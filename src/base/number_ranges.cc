#include "base/number_ranges.h"

#include <fmt/format.h>

namespace lockstep {

std::string NumberRangesText(const std::vector<size_t>& sorted) {
  std::string text;
  for (size_t i = 0; i < sorted.size();) {
    size_t last = i;
    while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", sorted[i]);
    if (last > i) text += fmt::format("{}{}", last == i + 1 ? ", " : "-", sorted[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace lockstep
