#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/job_graph/job_graph.h"
#include "analysis/what_if/lever_plan.h"
#include "analysis/what_if/work_table.h"

namespace lockstep::analysis {

/// What a lever makes of one step.
class StepSimulator {
 public:
  StepSimulator(const JobStepGraph& step, size_t rank_count)
      : step_(step), rank_count_(rank_count), table_(step.graph, rank_count) {}

  /// First rank's start to last rank's end with the lever. Cost: O(edges).
  int64_t Time(const LeverPlan& plan) const;

 private:
  template <typename WeightOf>
  int64_t Run(const WeightOf& weight_of) const;
  int64_t Transfers(double speedup) const;
  int64_t LongestTransfers() const;
  std::vector<int64_t> MediansOfAll() const;
  int64_t AtMedian(const std::vector<size_t>& ranks) const;
  int64_t ScaledTo(const std::vector<int64_t>& things_ns, const std::vector<bool>& chosen) const;
  int64_t EvenStages(const std::vector<std::vector<size_t>>& stages) const;

  const JobStepGraph& step_;
  size_t rank_count_;
  WorkTable table_;
};

}  // namespace lockstep::analysis
