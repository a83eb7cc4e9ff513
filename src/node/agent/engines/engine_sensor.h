#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "node/agent/engines/engine_client.h"
#include "node/agent/engines/engine_endpoint.h"
#include "node/agent/engines/engine_finder.h"
#include "node/agent/engines/engine_meter.h"
#include "node/agent/sensors/sensor.h"

namespace lockstep::agent {

/// lockstep_serving_engine_up; the rest is ServingMetricSpecs().
const MetricSpecs& EngineMetricSpecs();

struct EngineSensorOptions {
  std::string host;
  std::vector<EngineEndpoint> endpoints = {};  ///< As the settings have them.
  std::function<std::vector<FoundEngine>()> find =
      nullptr;  ///< Further ones on the loopback; null: none are looked for.
  std::chrono::milliseconds period = std::chrono::seconds(5);
  std::chrono::milliseconds timeout = std::chrono::seconds(3);
  std::function<void(const std::string& line)> log = nullptr;
};

/// Metrics of inference engines, under the names of requests that ranks mark themselves. One that does not answer, or
/// answers something else, has no series but lockstep_serving_engine_up.
class EngineSensor final : public Sensor {
 public:
  explicit EngineSensor(EngineSensorOptions options);

  const char* name() const override { return "engines"; }
  std::chrono::milliseconds period() const override { return options_.period; }
  Result<Reading> Look() override;
  void Stop() override { client_.Stop(); }

 private:
  struct Watched {
    EngineEndpoint endpoint;
    EngineMeter meter;
    std::string trouble;  ///< That was told.
  };
  void FindMore();
  void Take(const Result<std::string>& answer, Watched* watched);

  const EngineSensorOptions options_;
  EngineClient client_;
  std::map<std::string, Watched> watched_;  ///< By job.
  std::chrono::steady_clock::time_point find_again_ = {};
};

}  // namespace lockstep::agent
