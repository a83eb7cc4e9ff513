#include "analysis/wait_states/wait_states.h"

#include <map>
#include <utility>

#include "analysis/pass.h"
#include "analysis/rank_map.h"
#include "analysis/rank_passes.h"
#include "analysis/rank_steps.h"
#include "analysis/wait_states/blame.h"
#include "analysis/wait_states/stretch_activity.h"
#include "analysis/wait_states/wait_plan.h"

namespace lockstep::analysis {

const char* WaitStateKindName(WaitStateKind kind) {
  switch (kind) {
    case WaitStateKind::kLateSender: return "late_sender";
    case WaitStateKind::kLateReceiver: return "late_receiver";
    case WaitStateKind::kWaitAtCollective: return "wait_at_collective";
  }
  return "wait_at_collective";
}

const char* RootCauseName(RootCause cause) {
  switch (cause) {
    case RootCause::kKernel: return "kernel";
    case RootCause::kCopy: return "copy";
    case RootCause::kLaunchDelay: return "launch_delay";
    case RootCause::kHost: return "host";
    case RootCause::kDataLoading: return "data_loading";
    case RootCause::kGarbageCollection: return "garbage_collection";
    case RootCause::kAllocator: return "allocator";
    case RootCause::kCheckpoint: return "checkpoint";
    case RootCause::kNothingRecorded: return "nothing_recorded";
    case RootCause::kSlowLink: return "slow_link";
  }
  return "host";
}

const char* WaitPatternName(WaitPattern pattern) {
  switch (pattern) {
    case WaitPattern::kChronic: return "chronic";
    case WaitPattern::kPeriodic: return "periodic";
    case WaitPattern::kOneOff: return "one_off";
    case WaitPattern::kIrregular: return "irregular";
  }
  return "irregular";
}

namespace {

struct WaitActivityPass {
  static constexpr std::string_view kName = "wait_activity";
  using Args = std::map<size_t, WaitRankTask>;  // By rank index.
  using Partial = WaitRankActivity;
  static Partial Map(const RunContext& shared, size_t rank_index, const Args& args) {
    const auto task = args.find(rank_index);
    return task != args.end() ? MapWaitActivity(shared, task->second, rank_index) : Partial();
  }
};

}  // namespace

void AddWaitStatePasses(RankPasses* passes) { passes->Add<WaitActivityPass>(); }

WaitStates ComputeWaitStates(const RunContext& shared, const Collectives& collectives) {
  const size_t rank_count = shared.run->ranks.size();
  std::vector<WaitRankFacts> facts;
  for (std::vector<model::Step>& steps : FindRankSteps(shared)) facts.push_back({std::move(steps)});
  const WaitPlan plan = PlanWaitStates(*shared.run, collectives, facts);
  std::map<size_t, WaitRankTask> tasks;
  std::vector<size_t> asked;
  for (size_t r = 0; r < rank_count; ++r) {
    if (plan.stretches[r].empty()) continue;
    tasks.emplace(r, MakeWaitRankTask(collectives, plan, r));
    asked.push_back(r);
  }
  std::vector<WaitRankActivity> measured = MapRanks<WaitActivityPass>(shared, tasks, asked);
  std::vector<WaitRankActivity> activity(rank_count);
  for (size_t i = 0; i < asked.size(); ++i) activity[asked[i]] = std::move(measured[i]);
  return FinishWaitStates(*shared.run, collectives, plan, activity);
}

Pass WaitStatesPass() {
  return RunPass<WaitStates>(
      {.question = "What made the others wait first of all, and on which rank?", .needs = {"collectives"}},
      [](PassContext& context) { return ComputeWaitStates(context.shared(), context.Get<Collectives>()); });
}

}  // namespace lockstep::analysis
