#include "analysis/frontier/job_stages.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "analysis/frontier/rounds.h"

namespace lockstep::frontier {

using model::RankStages;
using model::Stage;
using model::StageSpan;
using model::StepStages;

namespace {

void HideCommunication(std::vector<RankStages>* ranks) {
  for (RankStages& rank : *ranks) {
    for (StepStages& step : rank.steps) {
      for (StageSpan& span : step.spans) {
        if (span.stage == Stage::kCommunication) span.stage = Stage::kOther;
      }
    }
  }
}

/// The group in which the straggler costs most, if that is more than it costs where all ranks meet.
std::optional<size_t> WhereAwaited(const JobStages& job, const Accounting& as_one) {
  std::optional<size_t> group_idx;
  int64_t most_ns = as_one.At(job.verdict.stage).cost[job.verdict.rank_idx].ns;
  for (size_t i = 0; i < job.groups.size(); ++i) {
    const std::vector<size_t>& members = job.groups[i].members;
    const auto member = std::find(members.begin(), members.end(), job.verdict.rank_idx);
    if (member == members.end()) continue;
    const auto place = static_cast<size_t>(member - members.begin());
    const int64_t cost_ns = job.groups[i].account.At(job.verdict.stage).cost[place].ns;
    if (cost_ns > most_ns) {
      most_ns = cost_ns;
      group_idx = i;
    }
  }
  return group_idx;
}

}  // namespace

int64_t JobStages::world_size() const {
  auto size = static_cast<int64_t>(ranks.size());
  for (const RankStages& rank : ranks) size = std::max<int64_t>(size, rank.world_size.value_or(0));
  return size;
}

StepsAccounting AccountSteps(const SharedSteps& steps, const std::vector<RankStages>& ranks,
                             const std::vector<std::string>& group_names) {
  StepsAccounting accounting{.rounds = steps.CutRounds()};
  accounting.parts = AccountParts(accounting.rounds, kMostWindows);
  accounting.as_one = Whole(accounting.rounds, accounting.parts);
  accounting.groups = AccountGroups(steps, ranks, group_names, &accounting.parts);
  accounting.account = accounting.groups.empty() ? accounting.as_one : Whole(accounting.rounds, accounting.parts);
  return accounting;
}

JobStages AssessJob(std::vector<RankStages> ranks, model::Ledger ledger, model::StageJob facts) {
  const bool hides =
      std::any_of(ranks.begin(), ranks.end(), [](const RankStages& rank) { return rank.hides_communication; });
  if (hides) HideCommunication(&ranks);
  JobStages job;
  job.group_names = NumberGroups(&ranks);
  {
    StepsAccounting steps = AccountSteps(SharedSteps(ranks), ranks, job.group_names);
    job.is_pipeline =
        steps.rounds.pairwise_count > 0 ||
        std::any_of(steps.groups.begin(), steps.groups.end(), [](const Group& group) { return group.is_pairwise; });
    job.over_time = FollowOverTime(steps.parts);
    job.account = std::move(steps.account);
    job.groups = std::move(steps.groups);
    job.verdict = Judge(job.account);
    if (job.verdict.answer == Answer::kStraggler) job.group_idx = WhereAwaited(job, steps.as_one);
  }
  job.memory = rank_memory::Assess(ranks);
  job.ranks = std::move(ranks);
  job.ledger = std::move(ledger);
  job.facts = std::move(facts);
  return job;
}

}  // namespace lockstep::frontier
