#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <string_view>
#include <vector>

#include "node/agent/sensors/metric_spec.h"

namespace lockstep::agent {

/// Whether an Accept header asks for OpenMetrics rather than for Prometheus's own text.
bool AcceptsOpenMetrics(std::string_view accept);

inline constexpr const char* kOpenMetricsType = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A single value that a histogram has counted, and where more of it is to be found.
struct Exemplar {
  std::string family;
  MetricLabels series;  ///< All labels of the histogram.
  MetricLabels labels;  ///< Names and values of 128 characters together at most, else it is left out.
  double value = 0;
  double unix_seconds = 0;
};

/// The families as OpenMetrics 1.0.0 has them: counters' families without _total, bounds and quantiles as "1.0", an
/// end. An exemplar stands behind the bucket that it was counted in; of several for one bucket the first.
std::string OpenMetricsText(const std::vector<prometheus::MetricFamily>& families,
                            const std::vector<Exemplar>& exemplars = {});

}  // namespace lockstep::agent
