#pragma once

#include <vector>

#include "analysis/wait_states/stretch_activity.h"
#include "analysis/wait_states/wait_plan.h"
#include "analysis/wait_states/wait_states.h"
#include "model/run.h"

namespace lockstep::analysis {

/// Second round, reduce: from what late ranks and their peers did to first causes. Reads no events.
WaitStates FinishWaitStates(const model::Run& run, const Collectives& collectives, const WaitPlan& plan,
                            const std::vector<WaitRankActivity>& activity);

}  // namespace lockstep::analysis
