#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "node/agent/gpu/gpu_helper.h"
#include "node/agent/gpu/gpu_metrics.h"
#include "node/agent/sensors/sensor.h"

namespace lockstep::agent {

struct GpuSensorOptions {
  std::string host;
  std::string program = "/proc/self/exe";  ///< That is a helper with --gpu-helper.
  std::string library = "libnvidia-ml.so.1";
  std::optional<uint32_t> expected_count = {};
  std::chrono::seconds retry = std::chrono::seconds(300);  ///< After a call that hung.
};

/// NVIDIA's GPUs. A driver call that hangs is ended with its process. Its GPU is left out of the next readings and
/// tried again after a while; at most one new process is started in that time.
class GpuSensor final : public Sensor {
 public:
  explicit GpuSensor(GpuSensorOptions options);

  const char* name() const override { return "nvml"; }
  std::chrono::milliseconds deadline() const override;
  Result<Reading> Look() override;
  void Stop() override { helper_.Stop(); }

 private:
  using Clock = std::chrono::steady_clock;
  /// The metrics while there is no helper.
  Result<Reading> Standing() const;
  Result<Reading> AfterHang(const GpuAnswer& answer);
  GpuMetrics::Unresponsive Unresponsive() const;

  const GpuSensorOptions options_;
  GpuHelper helper_;
  GpuMetrics metrics_;
  std::map<std::optional<uint32_t>, Clock::time_point> hung_;  ///< Until when each is left alone.
  std::optional<Clock::time_point> replaced_;                  ///< When a helper was started after a hang.
  Clock::time_point start_again_ = {};
  std::string trouble_;  ///< Why there is no helper; empty: there is no library.
  bool is_present_ = false;
};

}  // namespace lockstep::agent
