#pragma once

#include <string>

#include "node/agent/sensors/metric_spec.h"
#include "node/agent/sensors/sensor.h"

namespace lockstep::agent {

/// lockstep_host_pressure_seconds_total.
const MetricSpecs& PressureMetricSpecs();

/// How long work of the node waited for a resource, as the kernel counts it (Documentation/accounting/psi.rst). No such
/// files: the kernel was built or started without.
class PressureSensor final : public Sensor {
 public:
  explicit PressureSensor(std::string host, std::string proc = "/proc")
      : host_(std::move(host)), proc_(std::move(proc)) {}
  const char* name() const override { return "pressure"; }
  Result<Reading> Look() override;

 private:
  const std::string host_;
  const std::string proc_;
};

}  // namespace lockstep::agent
