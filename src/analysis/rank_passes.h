#pragma once

#include "analysis/rank_map.h"

namespace lockstep::analysis {

// Each file that asks ranks adds its passes; AddRankPasses calls all of these.
void AddCollectiveCallPasses(RankPasses* passes);
void AddFetchEventsPasses(RankPasses* passes);
void AddImbalancePasses(RankPasses* passes);
void AddKernelKindPasses(RankPasses* passes);
void AddLateActivityPasses(RankPasses* passes);
void AddRankStepsPasses(RankPasses* passes);
void AddRankAnswersPasses(RankPasses* passes);
void AddWaitStatePasses(RankPasses* passes);

}  // namespace lockstep::analysis
