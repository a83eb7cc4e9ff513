#include "analysis/stragglers.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analysis/interval_union.h"
#include "analysis/late_activity.h"
#include "analysis/pass.h"
#include "analysis/rank_steps.h"

namespace lockstep::analysis {
namespace {

constexpr size_t kMaxExplained = 4;  // ranks whose lateness is looked into, worst first

struct LateInstance {
  size_t instance = 0;
  int64_t delay_ns = 0;
  uint64_t ordinal = 0;  // among the rank's collectives
  std::optional<int64_t> step = {};
};

/// What is gathered of one rank.
struct RankTally {
  uint64_t collective_count = 0;
  IntervalUnion own_waits;
  IntervalUnion delays;
  std::map<size_t, IntervalUnion> given;  // by the rank that waited
  std::vector<LateInstance> late;
  std::set<int64_t> steps;
  std::map<int64_t, int64_t> delay_by_step;
};

class StragglerFinder {
 public:
  StragglerFinder(const RunContext& shared, const Collectives& collectives, const WaitStates& wait_states)
      : shared_(shared),
        run_(*shared.run),
        collectives_(collectives),
        wait_states_(wait_states),
        tallies_(run_.ranks.size()),
        steps_(FindRankSteps(shared)) {}

  Stragglers Find() {
    for (size_t i = 0; i < collectives_.instances.size(); ++i) Tally(i);
    CountLateSteps();
    Stragglers result;
    for (size_t r = 0; r < tallies_.size(); ++r) {
      if (tallies_[r].collective_count > 0) result.rows.push_back(MakeRow(r));
    }
    std::sort(result.rows.begin(), result.rows.end(), [this](const StragglerRow& a, const StragglerRow& b) {
      return std::tie(b.wait_given_ns, run_.ranks[a.rank_index].rank, a.rank_index) <
             std::tie(a.wait_given_ns, run_.ranks[b.rank_index].rank, b.rank_index);
    });
    size_t explained = 0;
    for (StragglerRow& row : result.rows) {
      if (row.delay_ns > 0 && explained++ < kMaxExplained) Explain(&row);
    }
    return result;
  }

 private:
  void Tally(size_t index) {
    const CollectiveInstance& instance = collectives_.instances[index];
    if (!instance.synchronising || !TellsWaits(instance)) return;
    int64_t last_ns = INT64_MIN;
    for (const CollectiveMember& member : instance.members) last_ns = std::max(last_ns, member.arrival_ns);
    int64_t second_ns = INT64_MIN;
    for (const CollectiveMember& member : instance.members) {
      const bool is_last = instance.last_rank_index == member.rank_index;
      RankTally& tally = tallies_[member.rank_index];
      ++tally.collective_count;
      tally.own_waits.Add(member.arrival_ns, last_ns);
      if (const auto step = StepOf(member)) tally.steps.insert(*step);
      if (!is_last) second_ns = std::max(second_ns, member.arrival_ns);
    }
    if (!instance.last_rank_index) return;
    RankTally& late = tallies_[*instance.last_rank_index];
    late.delays.Add(second_ns, last_ns);
    for (const CollectiveMember& member : instance.members) {
      if (member.rank_index == *instance.last_rank_index) {
        const std::optional<int64_t> step = StepOf(member);
        if (step) late.delay_by_step[*step] += last_ns - second_ns;
        late.late.push_back({index, last_ns - second_ns, late.collective_count, step});
      } else {
        late.given[member.rank_index].Add(member.arrival_ns, last_ns);
      }
    }
  }

  /// The step in which the member's collective was issued (or, unknown, began): the last to start before it.
  std::optional<int64_t> StepOf(const CollectiveMember& member) const {
    const std::vector<model::Step>& steps = steps_[member.rank_index];
    const int64_t time_ns = member.issue ? member.issue->trace_ns : member.trace_start_ns;
    const auto after = std::upper_bound(steps.begin(), steps.end(), time_ns,
                                        [](int64_t value, const model::Step& step) { return value < step.start_ns; });
    if (after == steps.begin()) return std::nullopt;
    return (after - 1)->number;
  }

  /// A step is late by the rank that delayed it most.
  void CountLateSteps() {
    std::map<std::pair<int32_t, int64_t>, std::pair<int64_t, size_t>> worst;  // (window, step) -> (delay, rank index)
    for (size_t r = 0; r < tallies_.size(); ++r) {
      for (const auto& [step, delay_ns] : tallies_[r].delay_by_step) {
        auto& entry = worst[{run_.ranks[r].window, step}];
        if (delay_ns > entry.first) entry = {delay_ns, r};
      }
    }
    late_steps_.assign(tallies_.size(), 0);
    for (const auto& [step, entry] : worst) {
      if (entry.first > 0) ++late_steps_[entry.second];
    }
  }

  StragglerRow MakeRow(size_t r) {
    RankTally& tally = tallies_[r];
    StragglerRow row;
    row.rank_index = r;
    row.collective_count = tally.collective_count;
    row.last_count = tally.late.size();
    row.wait_ns = tally.own_waits.Length();
    row.delay_ns = tally.delays.Length();
    for (auto& [other, waits] : tally.given) row.wait_given_ns += waits.Length();
    row.waiting_rank_count = tally.given.size();
    row.last_ratio = static_cast<double>(row.last_count) / static_cast<double>(row.collective_count);
    row.step_count = static_cast<int64_t>(tally.steps.size());
    row.late_step_count = late_steps_[r];
    row.role = wait_states_.RoleOf(r);
    const bool in_most = row.step_count >= 2 ? 2 * row.late_step_count > row.step_count
                                             : row.last_count >= 2 && 2 * row.last_count > row.collective_count;
    row.chronic = row.role == WaitRole::kNamed && in_most;
    const auto worst = std::max_element(tally.late.begin(), tally.late.end(),
                                        [](const auto& a, const auto& b) { return a.delay_ns < b.delay_ns; });
    if (worst != tally.late.end()) row.worst_instance = worst->instance;
    return row;
  }

  void Explain(StragglerRow* row) {
    struct Costed {
      LateSpell spell;
      int64_t delay_ns = 0;
    };
    std::vector<Costed> spells;
    const LateInstance* previous = nullptr;
    for (const LateInstance& late : tallies_[row->rank_index].late) {
      if (previous != nullptr && late.ordinal == previous->ordinal + 1 && late.step == previous->step) {
        spells.back().spell.last_instance = late.instance;
        spells.back().delay_ns = std::max(spells.back().delay_ns, late.delay_ns);
      } else {
        spells.push_back({{late.instance, late.instance}, late.delay_ns});
      }
      previous = &late;
    }
    std::stable_sort(spells.begin(), spells.end(),
                     [](const Costed& a, const Costed& b) { return a.delay_ns > b.delay_ns; });
    std::vector<LateSpell> costliest_first;
    for (const Costed& costed : spells) costliest_first.push_back(costed.spell);
    row->activities = FindLateActivities(shared_, collectives_, row->rank_index, costliest_first);
  }

  const RunContext& shared_;
  const model::Run& run_;
  const Collectives& collectives_;
  const WaitStates& wait_states_;
  std::vector<RankTally> tallies_;
  std::vector<std::vector<model::Step>> steps_;
  std::vector<int64_t> late_steps_;
};

}  // namespace

Stragglers ComputeStragglers(const RunContext& shared, const Collectives& collectives, const WaitStates& wait_states) {
  return StragglerFinder(shared, collectives, wait_states).Find();
}

Pass StragglersPass() {
  return RunPass<Stragglers>(
      {.question = "Which rank do the others wait for, and what was it doing?", .needs = {"wait_states"}},
      [](PassContext& context) {
        return ComputeStragglers(context.shared(), context.Get<Collectives>(), context.Get<WaitStates>());
      });
}

}  // namespace lockstep::analysis
