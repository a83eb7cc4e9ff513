#include "analysis/rank_passes.h"

namespace lockstep::analysis {

void AddRankPasses(RankPasses* passes) {
  AddCollectiveCallPasses(passes);
  AddFetchEventsPasses(passes);
  AddImbalancePasses(passes);
  AddKernelKindPasses(passes);
  AddLateActivityPasses(passes);
  AddRankAnswersPasses(passes);
  AddRankStepsPasses(passes);
  AddWaitStatePasses(passes);
}

}  // namespace lockstep::analysis
