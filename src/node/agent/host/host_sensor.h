#pragma once

#include <string>

#include "node/agent/sensors/metric_spec.h"
#include "node/agent/sensors/sensor.h"

namespace lockstep::agent {

/// lockstep_host_*.
const MetricSpecs& HostMetricSpecs();

/// Processors, memory and network of the node, for where no node_exporter says it.
class HostSensor final : public Sensor {
 public:
  explicit HostSensor(std::string host, std::string proc = "/proc") : host_(std::move(host)), proc_(std::move(proc)) {}
  const char* name() const override { return "host"; }
  Result<Reading> Look() override;

 private:
  const std::string host_;
  const std::string proc_;
};

}  // namespace lockstep::agent
