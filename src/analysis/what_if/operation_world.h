#pragma once

#include <cstdint>
#include <vector>

#include "analysis/graph/graph.h"
#include "analysis/what_if/operation_schedule.h"
#include "base/result.h"
#include "model/operation_trace.h"

namespace lockstep::analysis {

/// How long every operation's own work takes, and whether what no dependency explains delays it.
struct OperationWorld {
  std::vector<int64_t> work_ns;  ///< By operation; of one that transfers with others: from the last start to its end.
  bool delayed = false;
};

/// A job of operations as a graph that can be run again with other durations.
class OperationGraph {
 public:
  /// Errors: kInvalidArgument when operations wait for each other in a circle; kLimitExceeded past 2^29 operations;
  /// kCorruptData when times lie years apart.
  static Result<OperationGraph> Create(const model::OperationTrace& trace, model::Ledger* ledger);

  const OperationSchedule& schedule() const { return schedule_; }
  const graph::Graph& graph() const { return graph_; }
  /// What was observed: each operation's own work, and its delays. Where clocks contradict the schedule by more than
  /// 10 ms, the work or delay is 0.
  const OperationWorld& observed() const { return observed_; }
  const std::vector<int64_t>& steps() const { return steps_; }
  const std::vector<int64_t>& observed_ns() const { return observed_ns_; }  ///< By step: last end - first start.
  uint32_t step_of(size_t operation) const { return step_of_[operation]; }  ///< Index into steps().

  /// Simulated time of each step. Cost: O(operations + dependencies).
  std::vector<int64_t> StepTimes(const OperationWorld& world) const;

 private:
  void FindSteps(const model::OperationTrace& trace);
  Status MeasureWork(const model::OperationTrace& trace);
  Status BuildGraph();

  OperationSchedule schedule_;
  OperationWorld observed_;
  std::vector<int64_t> delays_ns_;  // by operation
  std::vector<int64_t> steps_;
  std::vector<int64_t> observed_ns_;
  std::vector<int64_t> first_start_ns_;  // by step
  std::vector<uint32_t> step_of_;
  std::vector<graph::NodeId> end_nodes_;  // by operation; kNone where it takes no part
  graph::Graph graph_;
};

/// Mean of step times, ns.
double MeanStep(const std::vector<int64_t>& times_ns);

}  // namespace lockstep::analysis
