#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "node/agent/daemon/config.h"
#include "node/agent/sensors/metric_spec.h"

namespace lockstep::agent {

/// lockstep_serving_slo_*_seconds.
const MetricSpecs& ObjectiveMetricSpecs();

/// Adds the serving objectives to the measured metrics: a series for each histogram that they concern, with the same
/// labels, so that an alert can compare the two.
void AddServingObjectives(const ServingObjectives& objectives, std::vector<prometheus::MetricFamily>* families);

}  // namespace lockstep::agent
