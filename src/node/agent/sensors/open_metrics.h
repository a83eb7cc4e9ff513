#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::agent {

/// Whether an Accept header asks for OpenMetrics rather than for Prometheus's own text.
bool AcceptsOpenMetrics(std::string_view accept);

inline constexpr const char* kOpenMetricsType = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The families as OpenMetrics 1.0.0 has them: counters' families without _total, bounds and quantiles as "1.0", an
/// end.
std::string OpenMetricsText(const std::vector<prometheus::MetricFamily>& families);

}  // namespace lockstep::agent
