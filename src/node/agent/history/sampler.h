#pragma once

#include <prometheus/metric_family.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "node/agent/history/figures.h"

namespace lockstep::agent {

/// Picks out of metric families what the history keeps, for one instant. Not thread-safe.
class HistorySampler {
 public:
  void Take(const prometheus::MetricFamily& family);
  /// By kind, then labels. At most `most`; the rest is left out. What was taken is forgotten afterwards.
  ///
  /// Sensors look at times of their own: one may know of a rank before or after the one that says who it is
  /// (`lockstep_rank_info`). A rank keeps the identity of the previous instant. A rank without an identity yet is left
  /// out, because with half of its labels it would be another series.
  std::vector<HistorySample> Finish(size_t most);

 private:
  struct Thing {
    HistoryLabels labels;
    bool is_named = false;  ///< Its info metric was there.
    std::array<std::optional<double>, kMostFigures> values;
  };
  using Things = std::map<std::string, Thing, std::less<>>;

  Thing* ThingOf(HistoryKind kind, const prometheus::ClientMetric& metric);

  std::array<Things, kHistoryKinds> things_;                       ///< By their key labels' values.
  std::map<std::string, HistoryLabels, std::less<>> named_ranks_;  ///< Of the instant before, by the same.
};

/// The value of a counter, gauge or untyped sample.
double SampleValue(const prometheus::MetricFamily& family, const prometheus::ClientMetric& metric);
/// Null: it has no such label.
const std::string* FindLabel(const prometheus::ClientMetric& metric, std::string_view name);

}  // namespace lockstep::agent
