#include "analysis/rank_steps.h"

#include "analysis/rank_map.h"
#include "analysis/rank_passes.h"

namespace lockstep::analysis {
namespace {

struct StepsPass {
  static constexpr std::string_view kName = "steps";
  using Args = bool;  // Nothing to say.
  using Partial = std::vector<model::Step>;
  static Partial Map(const RunContext& shared, size_t rank_index, const Args& /*args*/) {
    return model::FindSteps(shared.run->ranks[rank_index], shared.run->names, shared.options.step_name);
  }
};

}  // namespace

void AddRankStepsPasses(RankPasses* passes) { passes->Add<StepsPass>(); }

std::vector<std::vector<model::Step>> FindRankSteps(const RunContext& shared) {
  return MapRanks<StepsPass>(shared, false);
}

}  // namespace lockstep::analysis
