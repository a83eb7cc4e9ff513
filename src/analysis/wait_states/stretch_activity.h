#pragma once

#include <cstdint>
#include <vector>

#include "analysis/collectives.h"
#include "analysis/rank_context.h"
#include "analysis/track_merge.h"
#include "analysis/wait_states/host_cause.h"
#include "analysis/wait_states/wait_plan.h"
#include "analysis/wait_states/wait_states.h"

namespace lockstep::analysis {

/// Time of a stretch that went into one thing.
struct ActivityShare {
  RootCause cause = RootCause::kHost;
  NameId name;  ///< Kernel, operator, annotation, frame or call; empty where nothing is recorded.
  int64_t duration_ns = 0;
};

/// Time of a stretch in one of the rank's own collectives, with nothing else running.
struct OwnWait {
  uint32_t place = 0;       ///< Index into WaitPlan::places of the rank.
  int64_t wait_ns = 0;      ///< Before the last member arrived.
  int64_t transfer_ns = 0;  ///< After that.
};

struct StretchActivity {
  std::vector<ActivityShare> shares;  ///< By (cause, name).
  std::vector<OwnWait> waits;         ///< By place.
};

/// Second round, arguments: what the plan and the collectives hold of one rank.
struct WaitRankTask {
  int64_t record_start_ns = 0;            ///< WaitPlan::record_start_ns of the rank.
  std::vector<WaitStretch> stretches;     ///< WaitPlan::stretches of the rank.
  std::vector<CollectiveMember> members;  ///< Its part in the collective of every place.
  std::vector<int64_t> waits_ns;          ///< WaitPlan::WaitOf of every place.
  std::vector<Interval> unexplained;      ///< WaitPlan::unexplained of the rank.
};
/// Empty where the rank has no stretches: there is nothing to measure.
WaitRankTask MakeWaitRankTask(const Collectives& collectives, const WaitPlan& plan, size_t rank_index);

/// Second round, map: one rank's stretches.
struct WaitRankActivity {
  std::vector<StretchActivity> stretches;  ///< Parallel to WaitPlan::stretches of the rank.
};

/// Books every instant of a stretch once. A rank with a device: compute kernel, else copy, else one of its collectives
/// (waiting, then transferring), else idle; idle time goes to what the CPU thread did that launched what ended it, and
/// once that call had returned to launch delay. A rank without: data loading, garbage collection or checkpoint, else
/// operator, else collective, else annotation or frame, else nothing recorded. What is unexplained is booked as
/// nothing: it neither accuses nor clears the rank. Source: docs/metrics.md#wait-states. Cost: O(events of the rank)
/// where it has stretches.
WaitRankActivity MapWaitActivity(const RunContext& shared, const WaitRankTask& task, size_t rank_index);

}  // namespace lockstep::analysis
