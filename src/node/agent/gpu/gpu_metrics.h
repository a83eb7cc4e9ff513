#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "node/agent/gpu/gpu_reading.h"
#include "node/agent/sensors/metric_spec.h"

namespace lockstep::agent {

/// All that Collect() may have.
const MetricSpecs& GpuMetricSpecs();
/// "lockstep_gpu_utilization_ratio"
const char* GpuMetricName(GpuMetric metric);
/// Its label for GpuSample::part: "sensor"; null: it has none.
const char* GpuMetricPart(GpuMetric metric);

/// A node's GPU metrics, and the counters kept between readings. Not thread-safe.
class GpuMetrics {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// What does not answer: a GPU, or (nullopt) the driver.
  using Unresponsive = std::set<std::optional<uint32_t>>;

  /// `expected_count`: GPUs that the node should have; unset: the most that were ever seen.
  GpuMetrics(std::string host, std::optional<uint32_t> expected_count);

  /// Also a reading without a driver.
  void Take(GpuReading reading, TimePoint now);
  /// The last reading is out of date; the counters stay.
  void Forget();
  std::vector<prometheus::MetricFamily> Collect(const Unresponsive& unresponsive) const;

 private:
  /// Reasons of which this counts the time itself, by whether they hold at each reading.
  static constexpr size_t kCountedReasons = 5;
  struct Counts {
    std::map<std::string, uint64_t> xids;
    std::array<double, kCountedReasons> reason_seconds = {};
    std::optional<TimePoint> reasons_at = {};
  };
  void AddDevice(const GpuDevice& device, MetricFamilies* out) const;

  const std::string host_;
  const std::optional<uint32_t> expected_count_;
  std::optional<GpuReading> reading_;
  uint32_t most_seen_ = 0;
  std::map<uint32_t, Counts> counts_;  ///< By GPU, also of one that is gone.
};

}  // namespace lockstep::agent
