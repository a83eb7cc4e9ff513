#pragma once

#include <cstdint>
#include <vector>

#include "analysis/wait_states/stretch_activity.h"
#include "analysis/wait_states/wait_plan.h"

namespace lockstep::analysis {

/// What a late rank did more of than the median of its peers.
struct LateReason {
  RootCause cause = RootCause::kHost;
  int64_t excess_ns = 0;
  NameId name;           ///< The name with the largest excess.
  int64_t own_ns = 0;    ///< Time under that name.
  int64_t peers_ns = 0;  ///< The peers' median of it.
};

/// Where a late rank was itself held up more than its peers at the same place.
struct HeldUp {
  uint32_t place = 0;
  int64_t wait_ns = 0;      ///< Waiting beyond the peers' median.
  int64_t transfer_ns = 0;  ///< Transfer beyond it.
};

struct LateReasons {
  std::vector<LateReason> reasons;  ///< Largest first; none below a tenth of the largest reason or hold-up.
  std::vector<HeldUp> held_up;      ///< By place; likewise.
  int64_t excess_ns = 0;            ///< Of all of them.
};

LateReasons FindLateReasons(const LateNode& node, const std::vector<WaitRankActivity>& activity, const WaitPlan& plan);

}  // namespace lockstep::analysis
