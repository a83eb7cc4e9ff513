#include "node/jobs/job_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/now.h"
#include "model/ledger.h"
#include "model/stages/rank_stages.h"
#include "node/control/client/fan_out.h"
#include "node/control/client/node_client.h"

namespace lockstep::jobs {
namespace {

using control::NodeStages;
using control::RankSteps;
using model::RankStages;
using model::Severity;
using model::StepStages;

using Answers = std::vector<Result<NodeStages>>;

Answers AskStagesOf(const Nodes& nodes, uint64_t last_steps, int64_t deadline_ns) {
  const control::StagesQuery query{.job_id = nodes.job_id, .last_steps = last_steps};
  return control::FanOut<NodeStages>(
      nodes.endpoints.size(), nodes.parallel, deadline_ns, [&](size_t i, int64_t left_ns) -> Result<NodeStages> {
        ASSIGN_OR_RETURN(const auto client, control::NodeClient::Create(nodes.endpoints[i]));
        return client->Stages(query, left_ns);
      });
}

/// Ranks without an id come from one launcher, as far as none of them is there twice.
Status CheckOneStagedJob(const Answers& answers) {
  std::set<std::pair<std::string, std::string>> jobs;  // By id and user.
  std::set<int32_t> nameless_ranks;
  bool is_twice = false;
  for (const Result<NodeStages>& answer : answers) {
    if (!answer) continue;
    for (const RankSteps& rank : answer->ranks) {
      jobs.emplace(rank.job_id, rank.user);
      if (rank.job_id.empty()) is_twice = !nameless_ranks.insert(rank.rank).second || is_twice;
    }
  }
  if (jobs.size() < 2 && !is_twice) return {};
  std::string names;
  for (const auto& [id, user] : jobs) {
    names += fmt::format("{}{} of {}", names.empty() ? "" : ", ", id.empty() ? "one without an id" : "--job " + id,
                         user.empty() ? "an unknown user" : user);
  }
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("several jobs run there: {}{}", names,
                  is_twice ? "; those without an id cannot be told apart (torchrun --rdzv-id gives one)" : "")};
}

RankStages ToRankStages(const RankSteps& steps, const std::string& host, std::vector<StepStages> unpacked) {
  RankStages rank{.rank = steps.rank,
                  .world_size = steps.world_size,
                  .host = host,
                  .process_id = steps.pid,
                  .source = fmt::format("{}, process {}", host, steps.pid),
                  .steps = std::move(unpacked),
                  .groups = steps.groups,
                  .dropped_record_count = steps.lost_record_count,
                  .ended_in_order = steps.ended_in_order,
                  .has_device_times = steps.has_device_times,
                  .hides_communication = steps.hides_communication};
  rank.impossible_step_count = ingest::DropImpossibleSteps(&rank.steps);
  return rank;
}

/// What was looked at of all nodes. Ranks are as they came.
struct Joined {
  std::vector<RankStages> ranks;
  std::vector<uint64_t> first_places;  ///< Of each rank: how many steps it had before those.
  bool has_more = false;               ///< Some rank has older ones than were asked for.
  model::Ledger ledger;
};

void TakeRank(const RankSteps& steps, const std::string& host, uint64_t last_steps, Joined* joined) {
  Result<std::vector<StepStages>> unpacked = control::UnpackSteps(steps.steps);
  if (!unpacked) {
    joined->ledger.Add({.code = "unreadable_file",
                        .severity = Severity::kError,
                        .source = host,
                        .rank = steps.rank,
                        .message = unpacked.error().ToString(),
                        .advice = "lockstep and this node's lockstepd should be of one version"});
    return;
  }
  const uint64_t count = unpacked->size();
  if (count < last_steps && count < steps.seen_step_count) {
    joined->ledger.Add({.code = "stage_steps_dropped",
                        .severity = Severity::kError,
                        .source = host,
                        .rank = steps.rank,
                        .count = std::min(last_steps, steps.seen_step_count) - count,
                        .message = "the node's lockstepd has dropped older steps for want of room",
                        .advice = "ask for fewer (--last), or read the rank's files"});
  }
  joined->has_more = joined->has_more || count < steps.kept_step_count;
  RankStages rank = ToRankStages(steps, host, std::move(*unpacked));
  if (rank.steps.empty()) return;
  joined->first_places.push_back(std::max(steps.seen_step_count, count) - count);
  joined->ranks.push_back(std::move(rank));
}

/// Numbers that a program begins again are no good between ranks: then the order since the rank's begin counts.
void NumberByPlace(Joined* joined) {
  const auto grows = [](const RankStages& rank) {
    return std::adjacent_find(rank.steps.begin(), rank.steps.end(), [](const StepStages& a, const StepStages& b) {
             return a.number >= b.number;
           }) == rank.steps.end();
  };
  if (std::all_of(joined->ranks.begin(), joined->ranks.end(), grows)) return;
  for (size_t i = 0; i < joined->ranks.size(); ++i) {
    auto place = static_cast<int64_t>(std::min<uint64_t>(joined->first_places[i], INT64_MAX / 2));
    for (StepStages& step : joined->ranks[i].steps) step.number = place++;
  }
}

/// How many numbers there are from the first that all ranks may have to the last.
int64_t SharedCount(const std::vector<RankStages>& ranks) {
  int64_t first = INT64_MIN;
  int64_t last = INT64_MAX;
  for (const RankStages& rank : ranks) {
    first = std::max(first, rank.steps.front().number);
    last = std::min(last, rank.steps.back().number);
  }
  int64_t length = 0;
  return first > last || __builtin_sub_overflow(last, first, &length) ? 0 : length;
}

Result<Joined> Join(const Nodes& nodes, Answers answers, uint64_t last_steps) {
  RETURN_IF_ERROR(CheckOneStagedJob(answers));
  Joined joined;
  const Error* silence = nullptr;
  for (size_t i = 0; i < answers.size(); ++i) {
    const std::string& asked = nodes.endpoints[i].host;
    if (!answers[i]) {
      joined.ledger.Add({.code = "node_without_answer",
                         .severity = Severity::kError,
                         .source = asked,
                         .message = answers[i].error().ToString(),
                         .advice = "its ranks are not counted: lockstep status says what is wrong there"});
      if (silence == nullptr) silence = &answers[i].error();
      continue;
    }
    const std::string& host = answers[i]->host.empty() ? asked : answers[i]->host;
    for (const RankSteps& rank : answers[i]->ranks) TakeRank(rank, host, last_steps, &joined);
  }
  if (joined.ranks.empty() && silence != nullptr) return *silence;
  if (joined.ranks.empty()) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("no running rank{} has recorded a step on {}: start the job by `lockstep run --stages -- "
                             "CMD`, and give its files (PATH) once it has ended",
                             nodes.job_id.empty() ? "" : " of job " + nodes.job_id,
                             answers.size() == 1 ? "this node" : fmt::format("these {} nodes", answers.size()))};
  }
  NumberByPlace(&joined);
  return joined;
}

}  // namespace

Result<ingest::StageFiles> AskStages(const Nodes& nodes, uint64_t last_steps, int64_t deadline_ns) {
  const int64_t end_ns = SteadyNow() + deadline_ns;
  ASSIGN_OR_RETURN(Joined joined, Join(nodes, AskStagesOf(nodes, last_steps, deadline_ns), last_steps));
  // Daemons look once a second, each at its own time: of short steps one has many more by now than another.
  if (joined.has_more && SharedCount(joined.ranks) < static_cast<int64_t>(last_steps / 2)) {
    const int64_t left_ns = std::max<int64_t>(end_ns - SteadyNow(), 1);
    Result<Joined> all = Join(nodes, AskStagesOf(nodes, control::kMostKeptSteps, left_ns), last_steps);
    if (all) joined = std::move(*all);
  }
  return ingest::JoinRanks(std::move(joined.ranks), std::move(joined.ledger), Severity::kError);
}

}  // namespace lockstep::jobs
