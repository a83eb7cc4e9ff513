#include "analysis/wait_steps.h"

#include <algorithm>
#include <utility>

#include "analysis/interval_union.h"
#include "analysis/rank_steps.h"

namespace lockstep::analysis {
namespace {

/// The steps of every rank, and where a collective belongs in them.
class StepFinder {
 public:
  explicit StepFinder(const RunContext& shared) : steps_(FindRankSteps(shared)) {}

  /// The step in which the member's collective was issued (or, unknown, began): the last to start before it.
  std::optional<int64_t> Of(const CollectiveMember& member) const {
    const std::vector<model::Step>& steps = steps_[member.rank_index];
    const int64_t time_ns = member.issue ? member.issue->trace_ns : member.trace_start_ns;
    const auto after = std::upper_bound(steps.begin(), steps.end(), time_ns,
                                        [](int64_t value, const model::Step& step) { return value < step.start_ns; });
    if (after == steps.begin()) return std::nullopt;
    return (after - 1)->number;
  }

 private:
  std::vector<std::vector<model::Step>> steps_;
};

}  // namespace

std::vector<WaitStep> ComputeWaitSteps(const RunContext& shared, const Collectives& collectives) {
  struct Wait {
    int64_t step_number;
    int64_t start_ns;
    int64_t end_ns;
  };
  const StepFinder finder(shared);
  std::vector<std::vector<Wait>> by_rank(shared.run->ranks.size());
  for (const CollectiveInstance& instance : collectives.instances) {
    if (!instance.synchronising || !TellsWaits(instance)) continue;
    int64_t last_ns = INT64_MIN;
    for (const CollectiveMember& member : instance.members) last_ns = std::max(last_ns, member.arrival_ns);
    for (const CollectiveMember& member : instance.members) {
      if (const auto step = finder.Of(member))
        by_rank[member.rank_index].push_back({*step, member.arrival_ns, last_ns});
    }
  }
  std::vector<WaitStep> rows;
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    std::vector<Wait>& waits = by_rank[rank];
    std::stable_sort(waits.begin(), waits.end(), [](const Wait& a, const Wait& b) {
      return std::pair(a.step_number, a.start_ns) < std::pair(b.step_number, b.start_ns);
    });
    for (size_t i = 0; i < waits.size();) {
      const int64_t step = waits[i].step_number;
      IntervalUnion together;
      for (; i < waits.size() && waits[i].step_number == step; ++i) together.Add(waits[i].start_ns, waits[i].end_ns);
      rows.push_back({rank, step, together.Length()});
    }
  }
  return rows;
}

std::vector<std::optional<int64_t>> StepsOfInstances(const RunContext& shared, const Collectives& collectives) {
  const StepFinder finder(shared);
  std::vector<std::optional<int64_t>> steps;
  steps.reserve(collectives.instances.size());
  for (const CollectiveInstance& instance : collectives.instances) {
    steps.push_back(instance.members.empty() ? std::nullopt : finder.Of(instance.members.front()));
  }
  return steps;
}

}  // namespace lockstep::analysis
