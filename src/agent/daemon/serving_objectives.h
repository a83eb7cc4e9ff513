#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "agent/daemon/config.h"
#include "agent/sensors/metric_spec.h"

namespace lockstep::agent {

/// lockstep_serving_slo_*_seconds.
const MetricSpecs& ObjectiveMetricSpecs();

/// Adds what the settings ask of serving to whatever is measured of it: a series for each of the histogram that it is
/// about, with the same labels, so that an alert can hold one against the other.
void AddServingObjectives(const ServingObjectives& objectives, std::vector<prometheus::MetricFamily>* families);

}  // namespace lockstep::agent
