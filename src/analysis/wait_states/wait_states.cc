#include "analysis/wait_states/wait_states.h"

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

WaitStates ComputeWaitStates(const RunContext& shared, const Collectives& collectives) {
  const size_t rank_count = shared.run->ranks.size();
  std::vector<WaitRankFacts> facts;
  for (size_t r = 0; r < rank_count; ++r) facts.push_back(MapWaitRankFacts(shared, r));
  const WaitPlan plan = PlanWaitStates(*shared.run, collectives, facts);
  HostKinds kinds(shared.run->names);
  std::vector<WaitRankActivity> activity;
  for (size_t r = 0; r < rank_count; ++r) activity.push_back(MapWaitActivity(shared, collectives, plan, r, &kinds));
  return FinishWaitStates(*shared.run, collectives, plan, activity);
}

}  // namespace lockstep::analysis
