#include <fmt/format.h>

#include "base/base64.h"
#include "base/most_ranks.h"
#include "base/utf8.h"
#include "model/stages/rank_stages.h"
#include "node/control/api/json_fields.h"
#include "node/control/api/query_text.h"
#include "node/control/api/stages.h"

namespace lockstep::control {
namespace {

constexpr size_t kMostStepsText = (kMostKeptRankBytes + 2) / 3 * 4;

}  // namespace

template <typename Json>
void Fields(Json& json, RankSteps& rank) {
  json.TextOrNull("job_id", &rank.job_id);
  json.TextOrNull("user", &rank.user);
  json.Int("rank", &rank.rank, 0, kMostRanks - 1);
  json.Int("world_size", &rank.world_size, 1, kMostRanks);
  json.Int("pid", &rank.pid);
  json.Uint("seen_step_count", &rank.seen_step_count);
  json.Uint("kept_step_count", &rank.kept_step_count);
  json.Uint("lost_record_count", &rank.lost_record_count);
  json.Bool("ended_in_order", &rank.ended_in_order);
  json.Bool("device_times", &rank.has_device_times);
  json.Bool("hides_communication", &rank.hides_communication);
  json.Texts("groups", model::kMostGroups, &rank.groups);
  if constexpr (Json::kReads) {
    std::string text;
    json.Text("steps", &text, kMostStepsText);
    std::optional<std::string> bytes = DecodeBase64(text);
    json.Expect("steps", bytes.has_value(), "is not base64");
    if (bytes) rank.steps = std::move(*bytes);
  } else {
    json.WriteOnly("steps", EncodeBase64(rank.steps));
  }
}

template <typename Json>
void Fields(Json& json, NodeStages& stages) {
  json.Text("host", &stages.host);
  json.Int("now_unix_ns", &stages.now_unix_ns);
  json.Objects("ranks", kProcessesOfNode, &stages.ranks);
}

std::string ToJson(const NodeStages& stages) { return WriteDocument(stages); }
Result<NodeStages> ReadNodeStages(std::string_view json) { return ReadDocument<NodeStages>(json); }

std::string StagesPath(const StagesQuery& query) {
  std::string path = "/api/v1/stages";
  if (!query.job_id.empty()) path += "?job=" + EncodeQueryValue(query.job_id);
  if (query.last_steps) path += fmt::format("{}last={}", query.job_id.empty() ? '?' : '&', *query.last_steps);
  return path;
}

Result<StagesQuery> ReadStagesQuery(std::string_view text) {
  StagesQuery query;
  RETURN_IF_ERROR(ReadQueryText(text, [&](std::string_view name, const std::string& value) -> Status {
    if (name == "job") {
      query.job_id = value;
    } else if (name == "last") {
      ASSIGN_OR_RETURN(query.last_steps, ReadQueryNumber(name, value, 1, kMostKeptSteps));
    } else {
      return Error{ErrorCode::kInvalidArgument, fmt::format("unknown '{}': there are job and last", Printable(name))};
    }
    return {};
  }));
  return query;
}

}  // namespace lockstep::control
