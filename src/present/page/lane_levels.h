#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::page {

/// Gives events of one track, which come sorted by (start, longer first), the level to be drawn on: the first on which
/// nothing else is at the time. Ranges that nest lie below each other; ranges that merely overlap lie side by side.
/// What would go deeper than 255 levels shares the deepest.
class LaneLevels {
 public:
  uint8_t Place(int64_t start_ns, int64_t end_ns) {
    constexpr size_t kMostLevels = 255;
    size_t level = 0;
    while (level < ends_.size() && ends_[level] > start_ns) ++level;
    if (level == kMostLevels) --level;
    if (level == ends_.size()) ends_.push_back(end_ns);
    ends_[level] = std::max(ends_[level], end_ns);
    return static_cast<uint8_t>(level);
  }
  size_t count() const { return ends_.size(); }

 private:
  std::vector<int64_t> ends_;
};

}  // namespace lockstep::page
