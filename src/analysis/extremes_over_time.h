#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace lockstep::analysis {

/// A quantity over time, reduced to the smallest and largest of each stretch of time: no peak is lost.
template <typename Value>
struct ExtremesOverTime {
  std::vector<int64_t>
      time_ns;  ///< Of the stretch's first value, common clock; ascending. Stretches without are absent.
  std::vector<Value> min;
  std::vector<Value> max;
};

/// Puts values, ascending in time, into at most `stretch_count` (>= 1) equal stretches of [first_ns, last_ns].
template <typename Value>
class ExtremesBuilder {
 public:
  ExtremesBuilder(int64_t first_ns, int64_t last_ns, size_t stretch_count)
      : first_ns_(static_cast<uint64_t>(first_ns)),
        stretch_ns_((static_cast<uint64_t>(last_ns) - first_ns_) / std::max<size_t>(stretch_count, 1) + 1) {}

  /// `run_ns` is `time_ns` on the common clock.
  void Add(int64_t time_ns, int64_t run_ns, Value value) {
    const uint64_t stretch = (static_cast<uint64_t>(time_ns) - first_ns_) / stretch_ns_;
    if (extremes_.time_ns.empty() || stretch != stretch_) {
      stretch_ = stretch;
      extremes_.time_ns.push_back(run_ns);
      extremes_.min.push_back(value);
      extremes_.max.push_back(value);
    } else {
      extremes_.min.back() = std::min(extremes_.min.back(), value);
      extremes_.max.back() = std::max(extremes_.max.back(), value);
    }
  }

  ExtremesOverTime<Value> Take() { return std::move(extremes_); }

 private:
  uint64_t first_ns_;
  uint64_t stretch_ns_;
  uint64_t stretch_ = 0;
  ExtremesOverTime<Value> extremes_;
};

}  // namespace lockstep::analysis
