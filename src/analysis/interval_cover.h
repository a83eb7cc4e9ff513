#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/track_merge.h"

namespace lockstep::analysis {

/// The union of intervals that come sorted by start, and how much of it lies in any stretch.
class IntervalCover {
 public:
  /// Starts must not decrease; empty and reversed intervals count nothing.
  void Add(int64_t start_ns, int64_t end_ns) {
    if (end_ns <= start_ns) return;
    if (!intervals_.empty() && start_ns <= intervals_.back().end_ns) {
      intervals_.back().end_ns = std::max(intervals_.back().end_ns, end_ns);
      return;
    }
    before_ns_.push_back(intervals_.empty() ? 0 : before_ns_.back() + LengthOf(intervals_.back()));
    intervals_.push_back({start_ns, end_ns});
  }

  /// Length of the union's part in [start, end). Cost: O(log n).
  int64_t Covered(int64_t start_ns, int64_t end_ns) const {
    return end_ns <= start_ns ? 0 : CoveredUntil(end_ns) - CoveredUntil(start_ns);
  }

 private:
  static int64_t LengthOf(const Interval& interval) { return interval.end_ns - interval.start_ns; }

  int64_t CoveredUntil(int64_t time_ns) const {
    const auto after = std::upper_bound(intervals_.begin(), intervals_.end(), time_ns,
                                        [](int64_t t, const Interval& interval) { return t < interval.start_ns; });
    if (after == intervals_.begin()) return 0;
    const auto at = static_cast<size_t>(after - intervals_.begin()) - 1;
    return before_ns_[at] + std::min(time_ns, intervals_[at].end_ns) - intervals_[at].start_ns;
  }

  std::vector<Interval> intervals_;  // disjoint, not touching, in order
  std::vector<int64_t> before_ns_;   // parallel: covered before the interval
};

}  // namespace lockstep::analysis
