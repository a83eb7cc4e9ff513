#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ingest/nccl_ring/ring_pulse.h"
#include "node/agent/sensors/metric_spec.h"
#include "node/agent/sensors/sensor.h"
#include "node/proc/rings/ring_files.h"

namespace lockstep::agent {

/// lockstep_collective_*.
const MetricSpecs& CollectiveMetricSpecs();

/// Adds what rings of processes tell to samples: one series a (job, rank, group, operation), whichever processes and
/// communicators it comes from, so that none is there twice. Names of groups and operations are cut to 64 bytes; beyond
/// 256 of them in a job they are "other", and a name that was itself once stays so.
class CollectiveSeries {
 public:
  /// `now_ns`: CLOCK_MONOTONIC of the host.
  void Add(const std::string& job_id, const std::string& rank, const ingest::NcclRingPulse& pulse, int64_t now_ns);
  /// What was added since the last call. Jobs that were not are forgotten.
  std::vector<prometheus::MetricFamily> Take();

 private:
  struct Job {
    std::set<std::string> names;
    bool is_there = false;
  };
  std::string NameIn(Job* job, std::string_view name) const;
  void AddTotals(Job* job, const MetricLabels& process, const ingest::NcclRingPulse& pulse,
                 const std::vector<std::string>& groups);

  std::map<std::string, Job> jobs_;
  std::map<std::pair<std::string, MetricLabels>, double> values_;  ///< By metric and labels.
};

/// Counters of the NCCL profiler plugin's rings: those of the processes that `registered` names, and of all whose
/// environment names the plugin or its folder. Rings stay open while their process lives. One thread.
class NcclSensor final : public Sensor {
 public:
  explicit NcclSensor(std::function<std::vector<int32_t>()> registered);
  const char* name() const override { return "nccl_rings"; }
  Result<Reading> Look() override;

 private:
  /// A process of this start. One without a ring is looked at again after a while, and then ever more rarely: it may
  /// call exec, or begin with NCCL.
  struct Process {
    uint64_t start_ticks = 0;
    int64_t look_at_ns = 0;
    int64_t pause_ns = 0;
    std::string job_id;
    std::string rank;  ///< Empty: as the ring says.
    std::optional<proc::RingFile> ring;
  };
  /// Examines all processes again.
  void FindRings(int64_t now_ns);
  void OpenRing(int32_t pid, bool is_registered, int64_t now_ns, Process* process);

  const std::function<std::vector<int32_t>()> registered_;
  std::map<int32_t, Process> processes_;
  int64_t find_at_ns_ = 0;
  size_t open_count_ = 0;
  CollectiveSeries series_;
};

}  // namespace lockstep::agent
