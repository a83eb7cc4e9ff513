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

const LateActivity* StragglerRow::MainActivity() const {
  for (const LateActivity& activity : activities) {
    if (activity.cause != LateCause::kDeviceIdle) return &activity;
  }
  return activities.empty() ? nullptr : &activities.front();
}

Stragglers ComputeStragglers(const RunContext& shared, const Collectives& collectives, const WaitStates& wait_states) {
  return StragglerFinder(shared, collectives, wait_states).Find();
}

namespace {

std::vector<RowColumn<LateActivity>> ActivityColumns() {
  using Row = LateActivity;
  return {
      NamedField<&Row::cause, LateCauseName>(
          "cause", "Where it spent the time.",
          {"data_loading", "host", "nothing_recorded", "device_compute", "device_copy", "device_idle"}),
      Field<&Row::name>("name", "", "Operator, annotation, Python frame, `device idle`, ..."),
      Field<&Row::excess_ns>("excess_ns", "ns",
                             "Own time less the median of the other members', summed over its late arrivals."),
  };
}

/// A column of the first activity, for CSV.
template <auto kMember>
RowColumn<StragglerRow> FirstActivityColumn(std::string_view name) {
  RowColumn<StragglerRow> column{name, ColumnType::kText, "", "", "", [](const TableSource&, const StragglerRow& row) {
                                   return row.activities.empty() ? Cell() : Cell(row.activities.front().*kMember);
                                 }};
  return In(ColumnPlace::kOnlyInCsv, std::move(column));
}

std::vector<RowColumn<StragglerRow>> StragglerColumns() {
  using Row = StragglerRow;
  const auto worst = [](const TableSource& source, const Row& row) {
    return row.worst_instance ? &source.result.Get<Collectives>().instances[*row.worst_instance] : nullptr;
  };
  return {
      RankColumn<Row>(),
      WindowColumn<Row>(),
      Field<&Row::collective_count>("collective_count", "count", "Complete synchronising collectives it took part in."),
      Field<&Row::last_count>("last_count", "count", "Times it arrived last, beyond the clocks' uncertainty."),
      Field<&Row::last_ratio>("last_ratio", "0..1", "`last_count` / `collective_count`.", "no collective"),
      Field<&Row::wait_ns>("wait_ns", "ns", "Its own waiting for others."),
      Field<&Row::wait_given_ns>("wait_given_ns", "ns", "Waiting of all others where it was last."),
      Field<&Row::delay_ns>("delay_ns", "ns",
                            "Time the job lost to it: its arrival less the second-last one, where it was last."),
      NamedField<&Row::role, WaitRoleName>(
          "role",
          "What the first causes of waiting say of it: `straggler`: it is named; `passes_on`: late since it waited for "
          "one that is; or `none`.",
          {"none", "straggler", "passes_on"}),
      Field<&Row::chronic>("chronic", "", "Named, and late in most steps, not in one."),
      Field<&Row::step_count>("step_count", "count", "Steps that hold a collective of the rank; 0 without steps."),
      Field<&Row::late_step_count>("late_step_count", "count",
                                   "Those of them in which it caused more delay than any other rank."),
      In(ColumnPlace::kOnlyInSql,
         Field<&Row::worst_instance>("worst_instance", "",
                                     "The collective with the most delay from it: `collective_instances.instance`.",
                                     "never last")),
      In(ColumnPlace::kOnlyInJson,
         FieldAt<Row>(worst,
                      ObjectField<CollectiveInstance>(
                          "worst_collective",
                          "The collective with the most delay from it, a row of `data.collectives[]`; fields below.",
                          "never last",
                          {Field<&CollectiveInstance::window>("window", "", "As there."),
                           Field<&CollectiveInstance::group>("group", "", "As there."),
                           Field<&CollectiveInstance::sequence>("sequence", "", "As there."),
                           Field<&CollectiveInstance::name>("name", "", "As there.")}))),
      In(ColumnPlace::kNotInCsv,
         ListField<Row>(std::mem_fn(&Row::activities),
                        ObjectField("activities",
                                    "What it did more of than its peers before it arrived, largest first: `cause`, "
                                    "`name`, `excess_ns`.",
                                    "", ActivityColumns()))),
      FirstActivityColumn<&LateActivity::name>("first_activity"),
      FirstActivityColumn<&LateActivity::excess_ns>("first_activity_excess_ns"),
  };
}

}  // namespace

Pass StragglersPass() {
  return RunPass<Stragglers>(
      {.question = "Which rank do the others wait for, and what was it doing?",
       .needs = {"wait_states"},
       .tables = {DeclareTable("stragglers", "stragglers",
                               "Each rank's part in waiting, over synchronising collectives that tell waits; most "
                               "waiting given first. Times are unions: what two collectives share counts once",
                               &Stragglers::rows, StragglerColumns(), {"", TableOrder::kArrivals})}},
      [](PassContext& context) {
        return ComputeStragglers(context.shared(), context.Get<Collectives>(), context.Get<WaitStates>());
      });
}

}  // namespace lockstep::analysis
