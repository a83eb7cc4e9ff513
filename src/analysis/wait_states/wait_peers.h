#pragma once

#include "analysis/wait_states/wait_plan.h"

namespace lockstep::analysis {

/// For every late node, the ranks whose stretch it is compared with, at most 16: those that had called the same
/// collectives of the same sizes in the step so far (in a job of several kinds of groups: the ranks with the same part,
/// such as one pipeline stage of every replica); else, of a collective, its other members; else the rank itself in at
/// least three other steps. Fills nodes' peers and stretches, and lessens their lateness to what the peers confirm.
void ChoosePeers(const model::Run& run, const Collectives& collectives, WaitPlan* plan);

}  // namespace lockstep::analysis
