#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "analysis/track_merge.h"

namespace lockstep::analysis {

/// Length of the union of half-open intervals that are added in any order. Cost: O(n log n).
class IntervalUnion {
 public:
  /// Empty and reversed intervals count nothing. One that begins inside the interval before it extends that, so pieces
  /// of a whole that come in order take no memory.
  void Add(int64_t start_ns, int64_t end_ns) {
    if (start_ns >= end_ns) return;
    if (!intervals_.empty() && start_ns >= intervals_.back().start_ns && start_ns <= intervals_.back().end_ns) {
      intervals_.back().end_ns = std::max(intervals_.back().end_ns, end_ns);
    } else {
      intervals_.push_back({start_ns, end_ns});
    }
  }
  int64_t Length() {
    std::sort(intervals_.begin(), intervals_.end(),
              [](const Interval& a, const Interval& b) { return a.start_ns < b.start_ns; });
    int64_t length_ns = 0;
    int64_t covered_ns = std::numeric_limits<int64_t>::min();
    for (const Interval& interval : intervals_) {
      const int64_t from_ns = std::max(interval.start_ns, covered_ns);
      if (interval.end_ns <= from_ns) continue;
      length_ns += interval.end_ns - from_ns;
      covered_ns = interval.end_ns;
    }
    return length_ns;
  }

 private:
  std::vector<Interval> intervals_;
};

}  // namespace lockstep::analysis
