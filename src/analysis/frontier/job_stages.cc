#include "analysis/frontier/job_stages.h"

#include <algorithm>
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
  {
    const Rounds rounds = CutRounds(ranks);
    const std::vector<Accounting> parts = AccountParts(rounds, ranks, kMostWindows);
    job.account = Whole(rounds, ranks, parts);
    job.over_time = FollowOverTime(parts);
  }
  job.verdict = Judge(job.account);
  job.memory = rank_memory::Assess(ranks);
  job.ranks = std::move(ranks);
  job.ledger = std::move(ledger);
  job.facts = std::move(facts);
  return job;
}

}  // namespace lockstep::frontier
