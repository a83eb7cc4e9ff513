#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "node/agent/sensors/metric_spec.h"
#include "node/agent/sensors/open_metrics.h"
#include "node/agent/sensors/series_limit.h"
#include "node/control/api/capture.h"
#include "node/control/api/process.h"

namespace lockstep::agent {

/// What the daemon says of itself; job metrics and sensors have lists of their own.
const MetricSpecs& DaemonMetricSpecs();
/// All that /metrics may have, in the order of docs/daemon-metrics.md.
MetricSpecs AllMetricSpecs();

/// A value that is looked up when metrics are requested.
struct MetricSample {
  std::string name;  ///< Of a MetricSpec; any other is left out.
  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;
};

/// What the daemon counts of itself. Thread-safe.
class Metrics {
 public:
  explicit Metrics(const std::string& version, const SeriesLimits& limits = {});

  /// A request was answered. `handler` is the route's pattern: the number of series is bounded.
  void CountRequest(const char* handler, int code);
  void CountAuthenticationFailure(const char* reason);  ///< "unknown", "limited".
  /// Takes note of captures that have ended, each once.
  void CountEnded(const std::vector<control::Capture>& captures);
  /// Those that had ended before this daemon started: not counted.
  void SkipEnded(const std::vector<control::Capture>& captures);

  /// Prometheus's text. `samples` come from elsewhere in the daemon, `measured` from its sensors, of
  /// which what is beyond the limits is left out and counted; the daemon's own process is read here.
  std::string Text(const std::vector<control::Process>& processes, const std::vector<control::Capture>& captures,
                   const std::vector<MetricSample>& samples, std::vector<prometheus::MetricFamily> measured = {});
  /// The same as OpenMetrics, which has exemplars.
  std::string OpenText(const std::vector<control::Process>& processes, const std::vector<control::Capture>& captures,
                       const std::vector<MetricSample>& samples, std::vector<prometheus::MetricFamily> measured,
                       const std::vector<Exemplar>& exemplars);

 private:
  std::vector<prometheus::MetricFamily> Families(const std::vector<control::Process>& processes,
                                                 const std::vector<control::Capture>& captures,
                                                 const std::vector<MetricSample>& samples,
                                                 std::vector<prometheus::MetricFamily> measured);
  prometheus::Family<prometheus::Counter>& Counters(const char* name);

  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Counter>& authentication_failures_;
  prometheus::Family<prometheus::Counter>& captures_;
  prometheus::Family<prometheus::Counter>& capture_bytes_;
  prometheus::Family<prometheus::Counter>& series_dropped_;
  const std::string version_;
  const SeriesLimits limits_;
  Mutex mutex_;
  std::set<std::string> ended_ LOCKSTEP_GUARDED_BY(mutex_);  // Ids of captures that were counted.
};

}  // namespace lockstep::agent
