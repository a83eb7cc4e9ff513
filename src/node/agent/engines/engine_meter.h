#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "node/agent/engines/engine_reading.h"
#include "node/agent/sensors/metric_spec.h"

namespace lockstep::agent {

/// What a histogram has gained within the last minute. Not thread-safe.
class RecentHistogram {
 public:
  /// The state at `now_ns`. If counts went back or bounds changed, the engine was restarted: earlier values are
  /// forgotten.
  void Take(const EngineHistogram& histogram, int64_t now_ns);
  /// How many were observed within the last minute.
  uint64_t count() const;
  double sum() const;
  /// The same of all that the engine has observed since it was started.
  uint64_t all_count() const { return stands_.empty() ? 0 : stands_.back().histogram.buckets.back().second; }
  double all_sum() const { return stands_.empty() ? 0 : stands_.back().histogram.sum; }
  /// As Prometheus's histogram_quantile has it: linear within a bucket, from 0 in the first; beyond the last finite
  /// bound, that bound. Nullopt: nothing was observed, or there are no bounds.
  std::optional<double> Quantile(double share) const;

 private:
  struct Stand {
    int64_t at_ns;
    EngineHistogram histogram;
  };
  std::deque<Stand> stands_;  ///< The first is the newest that is a minute old, or the oldest there is.
};

/// An engine's metrics over successive looks, as Prometheus has them. Not thread-safe.
class EngineMeter {
 public:
  void Take(EngineReading reading, int64_t now_ns);
  /// It did not answer: it has no metrics until it does.
  void Miss() { reading_.reset(); }
  bool answered() const { return reading_.has_value(); }

  /// Adds its series. `model` takes the place of what the engine says where it is not empty.
  void Collect(const std::string& job, const char* engine, const std::string& model, MetricFamilies* out) const;

 private:
  std::optional<EngineReading> reading_;
  std::map<std::pair<std::string, std::string_view>, RecentHistogram> recent_;  ///< By model and metric.
};

}  // namespace lockstep::agent
