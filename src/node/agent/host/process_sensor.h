#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "node/agent/sensors/metric_spec.h"
#include "node/agent/sensors/sensor.h"
#include "node/proc/job_processes.h"

namespace lockstep::agent {

/// lockstep_rank_{cpu_seconds_total,resident_memory_bytes,threads,io_*_bytes_total}.
const MetricSpecs& ProcessMetricSpecs();

/// What the kernel counts of each rank's process. Where several have a rank's number, the first is the rank.
class ProcessSensor final : public Sensor {
 public:
  using FindProcesses = std::function<std::vector<proc::JobProcess>()>;
  /// `find` lists the node's ranks; it is asked at each look. `proc`: "/proc".
  ProcessSensor(std::string host, FindProcesses find, std::string proc = "/proc");

  const char* name() const override { return "processes"; }
  Result<Reading> Look() override;

 private:
  struct Watched {
    int32_t pid = 0;
    uint64_t start_ticks = 0;
    MetricLabels labels;
  };
  std::vector<Watched> FindRanks() const;

  const std::string host_;
  const FindProcesses find_;
  const std::string proc_;
};

}  // namespace lockstep::agent
