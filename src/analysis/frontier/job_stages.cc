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
std::optional<size_t> WhereAwaited(const JobStages& job, const Accounting& all) {
  std::optional<size_t> group_idx;
  int64_t most_ns = all.At(job.verdict.stage).cost[job.verdict.rank_idx].ns;
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

JobStages AssessJob(std::vector<RankStages> ranks, model::Ledger ledger, model::StageJob facts) {
  const bool hides =
      std::any_of(ranks.begin(), ranks.end(), [](const RankStages& rank) { return rank.hides_communication; });
  if (hides) HideCommunication(&ranks);
  JobStages job;
  const std::vector<std::string> group_names = NumberGroups(&ranks);
  Accounting all;
  {
    const SharedSteps steps(ranks);
    const Rounds rounds = steps.CutRounds();
    std::vector<Accounting> parts = AccountParts(rounds, kMostWindows);
    all = Whole(rounds, parts);
    job.groups = AccountGroups(steps, ranks, group_names, &parts);
    job.is_pipeline = rounds.pairwise_count > 0 || std::any_of(job.groups.begin(), job.groups.end(),
                                                               [](const Group& group) { return group.is_pairwise; });
    job.account = job.groups.empty() ? all : Whole(rounds, parts);
    job.over_time = FollowOverTime(parts);
  }
  job.verdict = Judge(job.account);
  if (job.verdict.answer == Answer::kStraggler) job.group_idx = WhereAwaited(job, all);
  job.memory = rank_memory::Assess(ranks);
  job.ranks = std::move(ranks);
  job.ledger = std::move(ledger);
  job.facts = std::move(facts);
  return job;
}

}  // namespace lockstep::frontier
