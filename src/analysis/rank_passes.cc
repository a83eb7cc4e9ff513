#include "analysis/rank_passes.h"

#include <algorithm>
#include <array>

namespace lockstep::analysis {
namespace {

constexpr auto kAsking = std::to_array<std::string_view>(
    {"breakdown", "idle",          "kernels", "operators",   "collectives", "stragglers",      "imbalance", "memory",
     "launch",    "critical_path", "groups",  "ddp",         "fsdp",        "pipeline",        "moe",       "inference",
     "regions",   "counters",      "flops",   "wait_states", "what_if",     "measured_kernels"});

}  // namespace

bool AsksRanks(std::string_view pass) { return std::find(kAsking.begin(), kAsking.end(), pass) != kAsking.end(); }

void AddRankPasses(RankPasses* passes) {
  AddCollectiveCallPasses(passes);
  AddFetchEventsPasses(passes);
  AddImbalancePasses(passes);
  AddKernelKindPasses(passes);
  AddLateActivityPasses(passes);
  AddRankStepsPasses(passes);
  AddRankTablesPasses(passes);
  AddWaitStatePasses(passes);
}

}  // namespace lockstep::analysis
