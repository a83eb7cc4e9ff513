#include "present/report/sparkline.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace lockstep::report {

std::string Sparkline(const std::vector<int64_t>& values, int width, const Style& style) {
  static constexpr std::array<const char*, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::array<const char*, 8> kMarks = {"_", ".", ":", "-", "=", "+", "*", "#"};
  const auto& marks = style.unicode ? kBlocks : kMarks;
  const size_t count = std::min(values.size(), static_cast<size_t>(std::max(width, 0)));
  if (count == 0) return "";
  const auto first = values.end() - static_cast<ptrdiff_t>(count);
  const auto [least, most] = std::minmax_element(first, values.end());
  // Less than a twentieth is the same: a line that jumps tells of nothing else.
  const bool is_flat = *most - *least <= *most / 20;
  std::string line;
  for (auto value = first; value != values.end(); ++value) {
    const double share = is_flat ? 0.4 : static_cast<double>(*value - *least) / static_cast<double>(*most - *least);
    line += marks[static_cast<size_t>(share * 7 + 0.5)];
  }
  return line;
}

}  // namespace lockstep::report
