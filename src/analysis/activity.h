#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "analysis/track_merge.h"

namespace lockstep::analysis {

/// What a stretch of time is spent on, as the breakdown counts it.
enum class Activity : uint8_t { kCompute, kCommunication, kMemory };
inline constexpr int kActivityCount = 3;

/// Lengths of unions and intersections, exact. All figures add up over disjoint windows.
struct ActivitySums {
  int64_t busy_ns = 0;            ///< |union(all)|
  int64_t compute_ns = 0;         ///< |union(compute)|
  int64_t communication_ns = 0;   ///< |union(communication)|
  int64_t overlapped_ns = 0;      ///< |communication n compute|
  int64_t memory_ns = 0;          ///< |union(memory)|
  int64_t exposed_memory_ns = 0;  ///< |memory \ (compute u communication)|

  ActivitySums& operator+=(const ActivitySums& other) {
    busy_ns += other.busy_ns;
    compute_ns += other.compute_ns;
    communication_ns += other.communication_ns;
    overlapped_ns += other.overlapped_ns;
    memory_ns += other.memory_ns;
    exposed_memory_ns += other.exposed_memory_ns;
    return *this;
  }
};

/// Measures unions of classified half-open intervals that come sorted by start, in one pass and constant memory.
/// Between two successive starts every class that is active has been active since the earlier one, so a class covers a
/// prefix of the stretch, and unions and intersections of prefixes are maxima and minima of their ends.
class ActivitySweep {
 public:
  /// With `gaps`, appends the maximal intervals between the first start and the last end in which nothing is active.
  explicit ActivitySweep(std::vector<Interval>* gaps = nullptr) : gaps_(gaps) {}

  /// Starts must not decrease from call to call, nor lie before the last Advance().
  void Add(int64_t start_ns, int64_t end_ns, Activity activity) {
    Advance(start_ns);
    int64_t& end = ends_[static_cast<size_t>(activity)];
    if (end_ns > end) end = end_ns;
  }

  /// Counts everything up to `to_ns`. Without gaps it may be called at window borders as well, in order.
  void Advance(int64_t to_ns) {
    const int64_t from_ns = now_ns_;
    if (to_ns <= from_ns) return;
    now_ns_ = to_ns;
    const int64_t compute_end = ends_[0];
    const int64_t communication_end = ends_[1];
    const int64_t memory_end = ends_[2];
    const int64_t working_end = compute_end > communication_end ? compute_end : communication_end;
    const int64_t busy_end = working_end > memory_end ? working_end : memory_end;
    if (busy_end <= from_ns) {
      if (from_ns != kNever) AddGap(from_ns, to_ns);
      return;
    }
    const auto covered = [from_ns, to_ns](int64_t end) {
      const int64_t clipped = end < to_ns ? end : to_ns;
      return clipped > from_ns ? clipped - from_ns : 0;
    };
    sums_.busy_ns += covered(busy_end);
    sums_.compute_ns += covered(compute_end);
    sums_.communication_ns += covered(communication_end);
    sums_.overlapped_ns += covered(compute_end < communication_end ? compute_end : communication_end);
    sums_.memory_ns += covered(memory_end);
    sums_.exposed_memory_ns += covered(busy_end) - covered(working_end);
    if (busy_end < to_ns) AddGap(busy_end, to_ns);
  }

  /// Counts what is still active to its end. Nothing may be added afterwards.
  void Finish() { Advance(std::max({ends_[0], ends_[1], ends_[2]})); }

  /// The sums since the last call of Take().
  ActivitySums Take() {
    const ActivitySums taken = sums_;
    sums_ = ActivitySums();
    return taken;
  }

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::min();

  void AddGap(int64_t start_ns, int64_t end_ns) {
    if (gaps_ == nullptr) return;
    if (!gaps_->empty() && gaps_->back().end_ns == start_ns) {
      gaps_->back().end_ns = end_ns;  // An event of no duration does not end a gap.
    } else {
      gaps_->push_back({start_ns, end_ns});
    }
  }

  std::vector<Interval>* gaps_;
  int64_t now_ns_ = kNever;
  std::array<int64_t, kActivityCount> ends_ = {kNever, kNever, kNever};
  ActivitySums sums_;
};

}  // namespace lockstep::analysis
