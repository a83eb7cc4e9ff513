#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/column.h"
#include "model/run.h"
#include "model/step.h"

namespace lockstep::analysis {

/// A part of each rank's trace whose own critical path is asked for.
struct CriticalPathRange {
  std::string name;      ///< CPU events whose names contain this; empty: the whole trace.
  int64_t instance = 0;  ///< The how manieth of them, from 0, by start.
};

struct AnalysisOptions {
  std::string step_name;                           ///< Empty: ProfilerStep#N.
  bool drop_last_step = false;                     ///< Holistic Trace Analysis' scope: docs/metrics.md#drop-last-step.
  int64_t kernel_wait_threshold_ns = 30'000;       ///< Idle: gaps below it are kernel_wait.
  std::vector<std::string> communication_kernels;  ///< Kernels whose names contain one of these are communication.
  double communication_ratio_threshold = 0.30;     ///< Finding: exposed communication over this share of compute.
  double imbalance_ratio_threshold = 0.10;
  double memory_imbalance_ratio_threshold = 0.20;
  std::optional<CriticalPathRange> critical_path_range;
  bool what_if = false;        ///< The pass what_if runs, too: it is dear and so not among "all".
  double what_if_speedup = 2;  ///< How many times faster a lever makes what it makes faster; above 1.
  uint32_t thread_count = 0;   ///< 0 = one per processor.
};

/// Facts about the run's names, computed once and shared by all ranks' passes.
struct RunContext {
  const model::Run* run = nullptr;
  AnalysisOptions options;
  std::vector<bool> is_communication;  ///< By NameId (kernel_kind.h).
};

/// Where a device event was launched: track and row of the runtime or driver call. kNoLaunch when the file has none.
struct LaunchRef {
  uint32_t track = UINT32_MAX;
  uint32_t row = UINT32_MAX;
  bool found() const { return track != UINT32_MAX; }
};

/// What several passes of one rank need, computed once per rank and dropped after its passes.
struct RankContext {
  const RunContext* shared = nullptr;
  size_t rank_index = 0;
  std::vector<model::Step> steps;
  /// Parallel to trace().tracks; per device-lane track, parallel to its events; empty for other lanes.
  std::vector<std::vector<LaunchRef>> launches;
  /// With drop_last_step and two or more steps: per device-lane track, 1 where the event is in scope. Empty = all.
  std::vector<std::vector<uint8_t>> in_scope;
  /// CPU events starting at or after this are out of scope (drop_last_step); absent = all in scope.
  std::optional<int64_t> cpu_cutoff_ns;

  const model::RankTrace& trace() const { return shared->run->ranks[rank_index]; }
  const model::NameTable& names() const { return shared->run->names; }
  const AnalysisOptions& options() const { return shared->options; }
  bool InScope(size_t track, size_t row) const {
    return in_scope.empty() || in_scope[track].empty() || in_scope[track][row] != 0;
  }
};

/// Cost: O(events of device and runtime lanes).
RankContext MakeRankContext(const RunContext& shared, size_t rank_index);

}  // namespace lockstep::analysis
