#pragma once

#include <string>

#include "node/agent/sensors/sensor.h"

namespace lockstep::agent {

/// AMD's GPUs by what the kernel's driver shows in /sys/class/drm, which needs no library. Label gpu: "card0".
class AmdSensor final : public Sensor {
 public:
  /// `sysfs`: "/sys".
  AmdSensor(std::string host, std::string sysfs) : host_(std::move(host)), sysfs_(std::move(sysfs)) {}
  const char* name() const override { return "amdgpu"; }
  Result<Reading> Look() override;

 private:
  const std::string host_;
  const std::string sysfs_;
};

}  // namespace lockstep::agent
