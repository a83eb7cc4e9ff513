#include "analysis/stages/stages_beside.h"

#include <algorithm>
#include <set>

#include "analysis/frontier/rounds.h"
#include "base/median.h"
#include "model/stages/stage.h"

namespace lockstep::analysis {
namespace {

bool Covers(const std::vector<std::pair<int64_t, int64_t>>& covered, int64_t instant_ns) {
  const auto after = std::upper_bound(covered.begin(), covered.end(), std::pair(instant_ns, INT64_MAX));
  return after != covered.begin() && instant_ns < (after - 1)->second;
}

std::set<int64_t> TracedSteps(const std::vector<model::RankStages>& ranks, const CoveredTimes& covered) {
  std::set<int64_t> traced;
  for (const model::RankStages& rank : ranks) {
    const auto found = covered.find(rank.rank);
    if (found == covered.end()) continue;
    for (const model::StepStages& step : rank.steps) {
      if (Covers(found->second, step.start_ns + step.duration_ns / 2)) traced.insert(step.number);
    }
  }
  return traced;
}

int64_t MedianStep(const frontier::Accounting& account) {
  std::vector<int64_t> steps_ns;
  for (const frontier::StepAccount& step : account.steps) steps_ns.push_back(step.ns);
  return steps_ns.empty() ? 0 : Median(&steps_ns);
}

StageScope ScopeOf(const char* name, frontier::Accounting account) {
  StageScope scope{name, std::move(account)};
  scope.verdict = frontier::Judge(scope.account);
  scope.median_step_ns = MedianStep(scope.account);
  return scope;
}

model::StageTimes UsualTimes(const frontier::Rounds& rounds, const std::vector<size_t>& rank_idxs) {
  std::vector<model::StageTimes> steps;
  // Each is divided before they are added: a damaged file may hold years.
  const auto rank_count = static_cast<int64_t>(rank_idxs.size());
  for (size_t i = 0; i < rounds.rounds.size(); ++i) {
    const frontier::Round& round = rounds.rounds[i];
    if (i == 0 || round.step != rounds.rounds[i - 1].step) steps.emplace_back();
    for (const model::Stage stage : model::kStages) {
      for (const size_t rank_idx : rank_idxs) At(steps.back(), stage) += At(round.ranks[rank_idx], stage) / rank_count;
    }
  }
  model::StageTimes usual_ns = {};
  if (steps.empty()) return usual_ns;
  for (const model::Stage stage : model::kStages) {
    std::vector<int64_t> means_ns;
    for (const model::StageTimes& step : steps) means_ns.push_back(At(step, stage));
    At(usual_ns, stage) = Median(&means_ns);
  }
  return usual_ns;
}

/// Of the steps that are among `traced`, or of all others.
StageScope ScopeOf(const char* name, const frontier::JobStages& job, const std::set<int64_t>& traced,
                   const std::vector<size_t>& traced_ranks, bool wanted) {
  const frontier::SharedSteps steps(job.ranks, [&](int64_t step) { return traced.contains(step) == wanted; });
  frontier::StepsAccounting part = frontier::AccountSteps(steps, job.ranks, job.group_names);
  StageScope scope = ScopeOf(name, std::move(part.account));
  scope.usual_ns = UsualTimes(part.rounds, traced_ranks);
  for (const size_t rank_idx : traced_ranks) {
    scope.mean_input_ns += scope.account.At(model::Stage::kInput).rank_ns[rank_idx] /
                           std::max<int64_t>(1, scope.account.step_count * static_cast<int64_t>(traced_ranks.size()));
  }
  return scope;
}

std::optional<int64_t> PerStepOf(const StageScope* scope, model::Stage stage) {
  if (scope == nullptr || scope->account.step_count == 0) return std::nullopt;
  return scope->account.At(stage).frontier_ns / scope->account.step_count;
}

std::vector<StageShareRow> SharesOf(const StagesBeside& stages) {
  std::vector<StageShareRow> rows;
  const frontier::Accounting& account = stages.job->account;
  if (account.step_count == 0) return rows;
  for (const model::Stage stage : model::kStages) {
    const frontier::StageAccount& each = account.At(stage);
    if (std::all_of(each.rank_ns.begin(), each.rank_ns.end(), [](int64_t ns) { return ns == 0; })) continue;
    StageShareRow row{model::StageName(stage), each.frontier_ns / account.step_count,
                      PerStepOf(stages.Scope("traced"), stage), PerStepOf(stages.Scope("not_traced"), stage)};
    if (const frontier::MostCost most = FindMostCost(account, stage); most.ns > 0) {
      row.cost_rank = account.ranks[most.rank_idx];
      row.cost_ns = most.ns / account.step_count;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::optional<int32_t> StageScope::rank() const {
  return has_straggler() ? std::optional(account.ranks[verdict.rank_idx]) : std::nullopt;
}

std::string StageScope::stage() const {
  const bool names = verdict.answer != frontier::Answer::kEven && verdict.answer != frontier::Answer::kUndecided;
  return names ? model::StageName(verdict.stage) : "";
}

std::optional<int64_t> StageScope::first_step() const {
  return account.steps.empty() ? std::nullopt : std::optional(account.steps.front().number);
}

std::optional<int64_t> StageScope::last_step() const {
  return account.steps.empty() ? std::nullopt : std::optional(account.steps.back().number);
}

const StageScope* StagesBeside::Scope(std::string_view name) const {
  const auto found =
      std::find_if(scopes.begin(), scopes.end(), [&](const StageScope& scope) { return scope.name == name; });
  return found == scopes.end() ? nullptr : &*found;
}

StagesBeside AssessStages(std::shared_ptr<const frontier::JobStages> job, bool has_traces,
                          const CoveredTimes& covered) {
  StagesBeside stages;
  stages.has_traces = has_traces;
  stages.scopes.push_back(ScopeOf("job", job->account));
  const std::set<int64_t> traced = TracedSteps(job->ranks, covered);
  if (!traced.empty()) {
    std::vector<size_t> traced_ranks;
    for (size_t i = 0; i < job->ranks.size(); ++i) {
      if (covered.contains(job->ranks[i].rank)) traced_ranks.push_back(i);
    }
    for (const bool wanted : {true, false}) {
      StageScope scope = ScopeOf(wanted ? "traced" : "not_traced", *job, traced, traced_ranks, wanted);
      if (scope.account.step_count > 0) stages.scopes.push_back(std::move(scope));
    }
  }
  stages.job = std::move(job);
  stages.shares = SharesOf(stages);
  return stages;
}

}  // namespace lockstep::analysis
