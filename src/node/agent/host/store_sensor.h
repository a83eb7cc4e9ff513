#pragma once

#include <string>

#include "node/agent/sensors/metric_spec.h"
#include "node/agent/sensors/sensor.h"

namespace lockstep::agent {

/// lockstep_store_free_bytes and lockstep_store_disk_bytes.
const MetricSpecs& StoreMetricSpecs();

/// Room where traces are written. A sensor of its own: a file system of another machine may not answer.
class StoreSensor final : public Sensor {
 public:
  /// `folder`: absolute; where it is not there, that above it which is.
  StoreSensor(std::string host, std::string folder) : host_(std::move(host)), folder_(std::move(folder)) {}
  const char* name() const override { return "store"; }
  Result<Reading> Look() override;

 private:
  const std::string host_;
  const std::string folder_;
};

}  // namespace lockstep::agent
