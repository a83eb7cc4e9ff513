#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "node/agent/job_metrics/job_metrics.h"
#include "node/agent/job_metrics/kept_steps.h"
#include "node/agent/job_metrics/span_files.h"
#include "node/agent/sensors/sensor.h"
#include "node/proc/job_processes.h"

namespace lockstep::agent {

/// Ranks of this node and what they record by liblockstep: steps, phases, counters, requests.
class SpanSensor final : public Sensor {
 public:
  using FindProcesses = std::function<std::vector<proc::JobProcess>()>;
  /// `find` lists the node's ranks; it is asked each few seconds. `kept`, which is borrowed, gets their steps.
  SpanSensor(std::string host, FindProcesses find, KeptSteps* kept);

  static constexpr const char* kName = "spans";
  const char* name() const override { return kName; }
  Result<Reading> Look() override;

 private:
  struct Watched {
    uint32_t uid = 0;
    uint64_t start_ticks = 0;
    RankIdentity identity;
    std::unique_ptr<SpanFile> file = nullptr;
  };
  void FindRanks();

  const std::string host_;
  const FindProcesses find_;
  KeptSteps* const kept_;
  std::chrono::steady_clock::time_point find_again_ = {};
  std::map<int32_t, Watched> watched_;  ///< By pid.
  JobMetrics jobs_;
};

}  // namespace lockstep::agent
