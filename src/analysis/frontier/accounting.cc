#include "analysis/frontier/accounting.h"

#include <algorithm>
#include <numeric>

#include "analysis/frontier/increments.h"
#include "base/median.h"

namespace lockstep::frontier {

using model::Stage;
using model::StageTimes;

namespace {

int64_t Sum(const StageTimes& times) { return std::accumulate(times.begin(), times.end(), int64_t{}); }

/// What each rank did before it waited for the meeting that ended the round.
std::vector<int64_t> OwnTimes(const Round& round) {
  std::vector<int64_t> own_ns;
  own_ns.reserve(round.ranks.size());
  for (const StageTimes& times : round.ranks) own_ns.push_back(Sum(times) - At(times, Stage::kCommunication));
  return own_ns;
}

/// The lower of two in the middle: of two ranks the faster one is the measure, as half of a job may be slow.
int64_t MedianOf(const Round& round, Stage stage) {
  std::vector<int64_t> ns;
  ns.reserve(round.ranks.size());
  for (const StageTimes& times : round.ranks) ns.push_back(At(times, stage));
  return LowerMedian(&ns);
}

class Accountant {
 public:
  explicit Accountant(const Rounds& rounds) : first_step_(rounds.rounds.empty() ? 0 : rounds.rounds.front().step) {
    const std::vector<int32_t>& ranks = rounds.ranks;
    account_.ranks = ranks;
    for (StageAccount& stage : account_.stages) {
      stage.rank_ns.resize(ranks.size());
      stage.leader_ns.resize(ranks.size());
      stage.cost.resize(ranks.size());
    }
  }

  void Take(const Round& round) {
    if (account_.steps.empty() || account_.steps.back().number != round.step) {
      account_.steps.push_back({.number = round.step});
      ++account_.step_count;
    }
    ++account_.round_count;
    const auto increments = Increments(round.ranks);
    for (const Stage stage : model::kStages) {
      const Increment& increment = increments[static_cast<size_t>(stage)];
      StageAccount& account = At(stage);
      account.frontier_ns += increment.ns;
      account.leader_ns[increment.leader_idx] += increment.ns;
      account_.total_ns += increment.ns;
      account_.steps.back().ns += increment.ns;
      if (!round.ends_in_meeting) account_.unmet_ns += increment.ns;
      for (size_t i = 0; i < round.ranks.size(); ++i) account.rank_ns[i] += model::At(round.ranks[i], stage);
    }
    if (round.ends_in_meeting && round.ranks.size() > 1) TakeCosts(round);
  }

  Accounting Take() { return std::move(account_); }

 private:
  StageAccount& At(Stage stage) { return account_.stages[static_cast<size_t>(stage)]; }

  void TakeCosts(const Round& round) {
    const std::vector<int64_t> own_ns = OwnTimes(round);
    const auto last = std::max_element(own_ns.begin(), own_ns.end());
    const auto last_idx = static_cast<size_t>(last - own_ns.begin());
    int64_t before_ns = 0;  // Of the last but one.
    for (size_t i = 0; i < own_ns.size(); ++i) {
      if (i != last_idx) before_ns = std::max(before_ns, own_ns[i]);
    }
    for (const Stage stage : model::kStages) {
      if (stage == Stage::kCommunication) continue;
      const int64_t median_ns = MedianOf(round, stage);
      int64_t balanced_ns = 0;  // The last rank's time, with this stage of each at the median.
      for (size_t i = 0; i < own_ns.size(); ++i) {
        const int64_t excess_ns = std::max<int64_t>(model::At(round.ranks[i], stage) - median_ns, 0);
        balanced_ns = std::max(balanced_ns, own_ns[i] - excess_ns);
      }
      At(stage).imbalance_ns += *last - balanced_ns;
      const int64_t excess_ns = model::At(round.ranks[last_idx], stage) - median_ns;
      AddCost(stage, last_idx, round.step, std::min(excess_ns, *last - before_ns));
    }
  }

  void AddCost(Stage stage, size_t rank_idx, int64_t step_number, int64_t ns) {
    if (ns <= 0) return;
    Cost& cost = At(stage).cost[rank_idx];
    cost.ns += ns;
    ++cost.round_count;
    if (ns > cost.largest_ns && step_number != first_step_) {
      cost.largest_ns = ns;
      cost.largest_step = step_number;
    }
    StepAccount& step = account_.steps.back();
    if (ns > step.cost_ns) {
      step.cost_ns = ns;
      step.rank_idx = rank_idx;
      step.stage = stage;
    }
  }

  int64_t first_step_;
  Accounting account_;
};

}  // namespace

MostCost FindMostCost(const Accounting& account, Stage stage) {
  MostCost most{.stage = stage};
  const std::vector<Cost>& costs = account.At(stage).cost;
  for (size_t i = 0; i < costs.size(); ++i) {
    if (costs[i].ns > most.ns) most = {costs[i].ns, i, stage};
  }
  return most;
}

MostCost FindMostCost(const Accounting& account) {
  MostCost most;
  for (const Stage stage : model::kStages) {
    const MostCost each = FindMostCost(account, stage);
    if (each.ns > most.ns) most = each;
  }
  return most;
}

std::vector<Accounting> AccountParts(const Rounds& rounds, size_t most) {
  std::vector<size_t> begins;  // Of steps: their first round.
  for (size_t i = 0; i < rounds.rounds.size(); ++i) {
    if (i == 0 || rounds.rounds[i].step != rounds.rounds[i - 1].step) begins.push_back(i);
  }
  begins.push_back(rounds.rounds.size());
  const size_t step_count = begins.size() - 1;
  const size_t count = std::min(most, step_count);
  std::vector<Accounting> parts;
  parts.reserve(count);
  for (size_t part = 0; part < count; ++part) {
    Accountant accountant(rounds);
    for (size_t i = begins[step_count * part / count]; i < begins[step_count * (part + 1) / count]; ++i) {
      accountant.Take(rounds.rounds[i]);
    }
    parts.push_back(accountant.Take());
  }
  return parts;
}

void Add(const Accounting& next, Accounting* account) {
  account->step_count += next.step_count;
  account->round_count += next.round_count;
  account->total_ns += next.total_ns;
  account->unmet_ns += next.unmet_ns;
  account->steps.insert(account->steps.end(), next.steps.begin(), next.steps.end());
  for (const Stage stage : model::kStages) {
    StageAccount& sum = account->stages[static_cast<size_t>(stage)];
    const StageAccount& added = next.At(stage);
    sum.frontier_ns += added.frontier_ns;
    sum.imbalance_ns += added.imbalance_ns;
    for (size_t i = 0; i < sum.cost.size(); ++i) {
      sum.rank_ns[i] += added.rank_ns[i];
      sum.leader_ns[i] += added.leader_ns[i];
      Cost& cost = sum.cost[i];
      cost.ns += added.cost[i].ns;
      cost.round_count += added.cost[i].round_count;
      if (added.cost[i].largest_ns > cost.largest_ns) {
        cost.largest_ns = added.cost[i].largest_ns;
        cost.largest_step = added.cost[i].largest_step;
      }
    }
  }
}

Accounting Whole(const Rounds& rounds, const std::vector<Accounting>& parts) {
  Accounting whole = Accountant(rounds).Take();
  for (const Accounting& part : parts) Add(part, &whole);
  whole.left_out_count = rounds.left_out_count;
  whole.tail_ns = rounds.tail_ns;
  return whole;
}

void TakeCosts(const Accounting& group, std::span<const size_t> members, Accounting* job) {
  for (const Stage stage : model::kStages) {
    StageAccount& of_job = job->stages[static_cast<size_t>(stage)];
    of_job.imbalance_ns = std::max(of_job.imbalance_ns, group.At(stage).imbalance_ns);
    for (size_t i = 0; i < members.size(); ++i) {
      const Cost& cost = group.At(stage).cost[i];
      if (cost.ns > of_job.cost[members[i]].ns) of_job.cost[members[i]] = cost;
    }
  }
  for (size_t i = 0; i < job->steps.size(); ++i) {
    const StepAccount& step = group.steps[i];
    if (step.cost_ns <= job->steps[i].cost_ns) continue;
    job->steps[i].cost_ns = step.cost_ns;
    job->steps[i].rank_idx = members[step.rank_idx];
    job->steps[i].stage = step.stage;
  }
}

}  // namespace lockstep::frontier
