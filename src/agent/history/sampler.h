#pragma once

#include <prometheus/metric_family.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/history/figures.h"

namespace lockstep::agent {

/// Picks out of metric families what the history keeps, for one instant. Not thread-safe.
class HistorySampler {
 public:
  void Take(const prometheus::MetricFamily& family);
  /// By kind, then labels. At most `most`; the rest is left out. The sampler is as new afterwards.
  std::vector<HistorySample> Finish(size_t most);

 private:
  struct Thing {
    HistoryLabels labels;
    std::array<std::optional<double>, kMostFigures> values;
  };
  using Things = std::map<std::string, Thing, std::less<>>;

  Thing* ThingOf(HistoryKind kind, const prometheus::ClientMetric& metric);

  std::array<Things, kHistoryKinds> things_;  ///< By their key labels' values.
};

/// The value of a counter, gauge or untyped sample.
double SampleValue(const prometheus::MetricFamily& family, const prometheus::ClientMetric& metric);
/// Null: it has no such label.
const std::string* FindLabel(const prometheus::ClientMetric& metric, std::string_view name);

}  // namespace lockstep::agent
