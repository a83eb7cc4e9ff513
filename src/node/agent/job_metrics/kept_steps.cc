#include "node/agent/job_metrics/kept_steps.h"

#include <algorithm>
#include <utility>

#include "node/control/api/process.h"

namespace lockstep::agent {

void KeptSteps::Take(const RankIdentity& identity, const RankMeter& meter) {
  std::vector<std::string> packed;
  for (const model::StepStages& step : meter.new_steps()) packed.push_back(control::PackStep(step));
  const MutexLock lock(mutex_);
  if (packed.empty() && !ranks_.contains(identity.pid)) return;
  const auto [place, is_new] = ranks_.try_emplace(identity.pid);
  const size_t most_bytes = std::min(control::kMostKeptRankBytes, control::kMostKeptBytes / ranks_.size());
  if (is_new) {
    for (auto& [pid, other] : ranks_) Drop(most_bytes, &other);  // Its part is theirs no more.
  }
  Kept& kept = place->second;
  control::RankSteps& facts = kept.facts;
  facts.job_id = identity.job_id;
  facts.user = identity.user;
  facts.rank = identity.rank.value_or(0);
  facts.world_size = identity.world_size;
  facts.pid = identity.pid;
  facts.lost_record_count = meter.missed_count() + meter.dropped_count();
  facts.ended_in_order = meter.has_ended();
  facts.has_device_times = meter.has_device_times();
  facts.hides_communication = meter.hides_communication();
  facts.groups = meter.groups();
  for (const std::string& step : packed) {
    ++facts.seen_step_count;
    if (step.empty() || step.size() > most_bytes) continue;  // Of a wrong clock, or of more spans than are told apart.
    kept.bytes += step;
    kept.sizes.push_back(static_cast<uint32_t>(step.size()));
    Drop(most_bytes, &kept);
  }
}

void KeptSteps::Drop(size_t most_bytes, Kept* kept) {
  while (kept->sizes.size() > control::kMostKeptSteps || kept->bytes.size() - kept->begin > most_bytes) {
    kept->begin += kept->sizes.front();
    kept->sizes.pop_front();
  }
  if (kept->begin <= kept->bytes.size() / 8) return;
  kept->bytes.erase(0, kept->begin);
  kept->begin = 0;
}

void KeptSteps::Forget(int32_t pid) {
  const MutexLock lock(mutex_);
  ranks_.erase(pid);
}

control::NodeStages KeptSteps::Ask(const control::StagesQuery& query) const {
  control::NodeStages stages;
  const MutexLock lock(mutex_);
  for (const auto& [pid, kept] : ranks_) {
    if (kept.sizes.empty() || !control::MatchesJob(kept.facts.job_id, query.job_id)) continue;
    control::RankSteps& rank = stages.ranks.emplace_back(kept.facts);
    rank.kept_step_count = kept.sizes.size();
    size_t begin = kept.begin;
    const uint64_t wanted = query.last_steps.value_or(kept.sizes.size());
    for (size_t i = 0; i + wanted < kept.sizes.size(); ++i) begin += kept.sizes[i];
    rank.steps = kept.bytes.substr(begin);
  }
  return stages;
}

}  // namespace lockstep::agent
