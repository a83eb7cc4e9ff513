#pragma once

#include <prometheus/client_metric.h>

#include <array>
#include <cstdint>
#include <map>

namespace lockstep::agent {

/// Quantiles 0.5, 0.9, 0.95 and 0.99 of what was observed within the last minute, each within 0.5 % of the value at
/// its rank (the ceil(q n)-th smallest of n), whatever n is. prometheus::Summary bounds the rank instead, which of a
/// hundred observations may name one that is two places off, and so a P95 that is several percent off.
///
/// Counts in buckets whose bounds grow geometrically, as DDSketch has them (Masson, Rim, Lee: DDSketch, VLDB 2019,
/// section 2). At most 2,764 buckets for each of the minute's six parts: values outside 1 us to 10^6 s count as those.
/// Times are of CLOCK_MONOTONIC.
class RecentQuantiles {
 public:
  /// `at_ns`: when it was, `times` over; what was before the last minute counts for count and sum alone.
  void Observe(double seconds, int64_t at_ns, uint64_t times = 1);

  /// A summary: the quantiles, NaN where nothing was observed within the minute; count and sum are of all time.
  prometheus::ClientMetric Collect(int64_t now_ns) const;

 private:
  static constexpr int64_t kPartNs = 10'000'000'000;
  static constexpr size_t kParts = 6;

  struct Part {
    int64_t number = -1;  // Its begin, in lengths of a part.
    std::map<int32_t, uint64_t> counts;
  };

  std::array<Part, kParts> parts_;
  uint64_t count_ = 0;
  double sum_ = 0;
};

}  // namespace lockstep::agent
