#include "analysis/job_graph/rank_graph.h"

#include <algorithm>

#include "analysis/job_graph/device_side.h"
#include "analysis/job_graph/host_side.h"
#include "analysis/pass.h"
#include "analysis/step_windows.h"

namespace lockstep::analysis {
namespace {

std::vector<RankStepGraph> EmptyGraphs(const RankContext& context) {
  std::vector<RankStepGraph> steps;
  for (const model::Step& window : StepWindows(context)) {
    RankStepGraph step;
    step.step = window.number;
    step.start_ns = window.start_ns;
    step.end_ns = window.end_ns;
    steps.push_back(std::move(step));
  }
  const model::RankTrace& trace = context.trace();
  if (steps.empty() && trace.first_ns && trace.last_ns) {
    RankStepGraph whole;
    bool any = false;
    for (const model::Track& track : trace.tracks) {
      const bool counts = track.lane == model::Lane::kDevice || track.lane == model::Lane::kOperators ||
                          track.lane == model::Lane::kRuntime;
      if (!counts || track.events.empty()) continue;
      if (!any) {
        whole.start_ns = track.events.start_ns[0];
        whole.end_ns = track.events.end_ns(0);
        any = true;
      }
      whole.start_ns = std::min(whole.start_ns, track.events.start_ns[0]);
      for (size_t row = 0; row < track.events.size(); ++row)
        whole.end_ns = std::max(whole.end_ns, track.events.end_ns(row));
    }
    if (any) steps.push_back(std::move(whole));
  }
  return steps;
}

}  // namespace

RankGraphs MapJobGraph(const RankContext& context) {
  RankGraphs graphs;
  graphs.steps = EmptyGraphs(context);
  if (graphs.steps.empty()) return graphs;
  std::vector<HostAnchor> anchors;
  AddDeviceSide(context, &graphs.steps, &anchors);
  AddHostSide(context, std::move(anchors), &graphs.steps);
  for (RankStepGraph& step : graphs.steps) {
    std::stable_sort(step.collectives.begin(), step.collectives.end(),
                     [](const RankCollective& a, const RankCollective& b) { return a.start_ns < b.start_ns; });
    step.edges.shrink_to_fit();
  }
  return graphs;
}

Pass RankGraphPass() {
  return ReducingPass<JobGraphs, RankGraphs>(
      {.kind = PassKind::kInternal}, MapJobGraph,
      [](PassContext&, std::vector<RankGraphs> ranks) { return JobGraphs{std::move(ranks)}; });
}

}  // namespace lockstep::analysis
