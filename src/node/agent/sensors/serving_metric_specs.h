#pragma once

#include "node/agent/sensors/metric_spec.h"

namespace lockstep::agent {

/// Metrics of requests, measured by ranks that mark them or by an inference engine. Labels job_id, model, engine.
const MetricSpecs& ServingMetricSpecs();

}  // namespace lockstep::agent
