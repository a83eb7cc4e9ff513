#include "node/agent/job_metrics/recent_quantiles.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::agent {
namespace {

constexpr double kError = 0.005;
constexpr double kGrowth = (1 + kError) / (1 - kError);
constexpr double kLeast = 1e-6;
constexpr double kMost = 1e6;
constexpr std::array kShares = {0.5, 0.9, 0.95, 0.99};

// Bucket i holds what is above kGrowth^(i-1) and at most kGrowth^i.
int32_t BucketOf(double value) {
  // Not std::clamp: what is not a number counts as the least.
  const double counted = value > kLeast ? std::min(value, kMost) : kLeast;
  return static_cast<int32_t>(std::ceil(std::log(counted) / std::log(kGrowth)));
}

// The geometric middle between the two bounds. Whole nanoseconds: further digits have no meaning, and not every format
// of /metrics writes them.
double ValueOf(int32_t bucket) { return std::round(2e9 * std::pow(kGrowth, bucket) / (kGrowth + 1)) / 1e9; }

}  // namespace

void RecentQuantiles::Observe(double seconds, int64_t at_ns, uint64_t times) {
  count_ += times;
  sum_ += seconds * static_cast<double>(times);
  if (at_ns < 0) return;  // Before the machine was started.
  const int64_t number = at_ns / kPartNs;
  Part& part = parts_[static_cast<size_t>(number) % kParts];
  if (part.number > number) return;  // There is a newer one in its place.
  if (part.number != number) part = {number, {}};
  part.counts[BucketOf(seconds)] += times;
}

prometheus::ClientMetric RecentQuantiles::Collect(int64_t now_ns) const {
  const int64_t number = now_ns / kPartNs;
  std::map<int32_t, uint64_t> counts;
  uint64_t recent = 0;
  for (const Part& part : parts_) {
    if (part.number < 0 || part.number <= number - static_cast<int64_t>(kParts)) continue;
    for (const auto& [bucket, count] : part.counts) {
      counts[bucket] += count;
      recent += count;
    }
  }
  prometheus::ClientMetric metric;
  metric.summary.sample_count = count_;
  metric.summary.sample_sum = sum_;
  auto bucket = counts.begin();
  uint64_t up_to = bucket == counts.end() ? 0 : bucket->second;
  for (const double share : kShares) {
    double value = std::numeric_limits<double>::quiet_NaN();
    if (recent > 0) {
      const auto rank = static_cast<uint64_t>(std::ceil(share * static_cast<double>(recent)));
      while (up_to < rank) up_to += (++bucket)->second;
      value = ValueOf(bucket->first);
    }
    metric.summary.quantile.push_back({share, value});
  }
  return metric;
}

}  // namespace lockstep::agent
