#pragma once

#include <string>

#include "node/agent/sensors/metric_spec.h"
#include "node/agent/sensors/sensor.h"

namespace lockstep::agent {

/// lockstep_ib_port_*.
const MetricSpecs& InfinibandMetricSpecs();

/// InfiniBand and RoCE ports of the node. Read file by file: a file that is missing or unreadable does not affect other
/// ports.
class InfinibandSensor final : public Sensor {
 public:
  /// `sysfs`: "/sys".
  InfinibandSensor(std::string host, std::string sysfs) : host_(std::move(host)), sysfs_(std::move(sysfs)) {}
  const char* name() const override { return "infiniband"; }
  Result<Reading> Look() override;

 private:
  const std::string host_;
  const std::string sysfs_;
};

}  // namespace lockstep::agent
