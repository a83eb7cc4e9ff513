#pragma once

#include <vector>

#include "analysis/rank_context.h"
#include "model/step.h"

namespace lockstep::analysis {

/// The steps of every rank (model::FindSteps), by rank index.
std::vector<std::vector<model::Step>> FindRankSteps(const RunContext& shared);

}  // namespace lockstep::analysis
