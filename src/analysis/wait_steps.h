#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/collectives.h"
#include "analysis/rank_context.h"

namespace lockstep::analysis {

/// One rank's own waiting for others in one step.
struct WaitStep {
  size_t rank_index = 0;
  int64_t step_number = 0;
  /// Union of [own arrival, last arrival) over the complete synchronising collectives that the rank issued in the step.
  /// A wait that two steps share counts in both. Source: docs/metrics.md#wait-steps.
  int64_t wait_ns = 0;
};

/// A row for every step in which the rank has such a collective, by (rank, step); waiting may be 0.
std::vector<WaitStep> ComputeWaitSteps(const RunContext& shared, const Collectives& collectives);

/// For every instance, the step number in which its first-listed member issued it; absent outside of steps.
std::vector<std::optional<int64_t>> StepsOfInstances(const RunContext& shared, const Collectives& collectives);

}  // namespace lockstep::analysis
