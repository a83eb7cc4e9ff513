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
void AddRankTablesPasses(RankPasses* passes);
void AddWaitStatePasses(RankPasses* passes);

/// Whether a pass of the registry reads events through MapRanks alone. For one that does not, events that are elsewhere
/// are brought here first (FetchEvents): right, and as large as the whole job.
bool AsksRanks(std::string_view pass);

}  // namespace lockstep::analysis
