#include "present/live_site/action_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <vector>

#include "base/json_object.h"
#include "base/nanoseconds.h"
#include "node/control/api/parse_json.h"
#include "node/live/job_view.h"

namespace lockstep::live_site {
namespace {

constexpr int64_t kMostIterations = 1000;
constexpr int64_t kMostDurationMs = 60'000;
constexpr size_t kMostRanks = 4096;
constexpr size_t kJobBytes = 256;

Status CheckMembers(JsonValue document, std::initializer_list<std::string_view> known) {
  if (!document.IsObject()) return Error{ErrorCode::kCorruptData, "is not a JSON object"};
  for (const auto& [name, value] : document.members()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("no member of that name is known here; there are: {}", fmt::join(known, ", "))};
  }
  return {};
}

}  // namespace

Result<CaptureWish> ReadCaptureWish(std::string_view json, const std::string& job_id) {
  ASSIGN_OR_RETURN(const JsonTree document, control::ParseJson(json));
  RETURN_IF_ERROR(CheckMembers(document.root(), {"job_id", "ranks", "iterations", "duration_ms", "stacks",
                                                 "record_shapes", "memory", "allow_unsafe"}));
  CaptureWish wish;
  JsonObject reader(document.root(), "");
  std::optional<int32_t> iterations;
  std::optional<int64_t> duration_ms;
  reader.Text("job_id", &wish.job_id, kJobBytes);
  reader.List("ranks", kMostRanks, [&](JsonValue value, const std::string& path) -> Status {
    const std::optional<int32_t> rank = value.Int32();
    if (!rank || *rank < 0) return Error{ErrorCode::kInvalidArgument, path + " is not a rank"};
    wish.selector.ranks.emplace_back(*rank, *rank);
    return {};
  });
  reader.Int("iterations", 1, kMostIterations, &iterations);
  reader.Int("duration_ms", 1, kMostDurationMs, &duration_ms);
  reader.Bool("stacks", &wish.options.stacks);
  reader.Bool("record_shapes", &wish.options.record_shapes);
  reader.Bool("memory", &wish.options.memory);
  reader.Bool("allow_unsafe", &wish.allow_unsafe);
  RETURN_IF_ERROR(reader.status());
  if (iterations && duration_ms) {
    return Error{ErrorCode::kInvalidArgument, "iterations and duration_ms exclude each other"};
  }
  if (wish.job_id.empty()) wish.job_id = job_id;
  live::SelectJob(wish.job_id, &wish.selector.job_id, &wish.selector.pids);
  if (iterations) {
    wish.window.mode = control::CaptureWindow::Mode::kIterations;
    wish.window.iterations = *iterations;
    wish.window.roundup = 5;  // As lockstep capture begins.
  }
  if (duration_ms) wish.window.duration_ns = *duration_ms * kMillisecondNs;
  return wish;
}

Result<std::string> ReadHangWish(std::string_view json, const std::string& job_id) {
  ASSIGN_OR_RETURN(const JsonTree document, control::ParseJson(json));
  RETURN_IF_ERROR(CheckMembers(document.root(), {"job_id"}));
  JsonObject reader(document.root(), "");
  std::string wished;
  reader.Text("job_id", &wished, kJobBytes);
  RETURN_IF_ERROR(reader.status());
  return wished.empty() ? job_id : wished;
}

}  // namespace lockstep::live_site
