#include "ingest/stage_files/stage_summary.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/json_object.h"
#include "base/json_value.h"
#include "base/most_ranks.h"
#include "base/small_file.h"
#include "base/system_error.h"
#include "base/unique_fd.h"
#include "base/utf8.h"
#include "model/stages/stage.h"

namespace lockstep::ingest {

using model::StageSummary;
using model::SummaryStep;
using model::SummaryWindow;

namespace {

constexpr std::string_view kSchema = "lockstep.stages/1";
constexpr const char* kSummaryFile = "summary.json";
constexpr size_t kMostBytes = size_t{512} << 20;
constexpr size_t kHeadBytes = 256;  // The schema is the first member.
constexpr int64_t kMostSummaryNs = int64_t{1} << 60;
constexpr int64_t kMostSteps = int64_t{1} << 40;
constexpr size_t kMostListedSteps = 10'000'000;
constexpr size_t kMostWindows = 1000;
constexpr size_t kMostTextBytes = 2000;

/// A whole number that has to be there.
void Need(JsonObject& object, std::string_view name, int64_t least, int64_t most, int64_t* out) {
  std::optional<int64_t> value;
  object.Int(name, least, most, &value);
  object.Require(name, object.failed() || value.has_value());
  if (value) *out = *value;
}

void ReadWorkload(JsonValue value, JsonObject& object, const std::string& path, model::Workload* workload) {
  if (!value) return;
  if (!value.IsObject()) return object.Fail(Error{ErrorCode::kCorruptData, path + " is not an object"});
  if (value.size() > model::kMostWorkloadKeys) {
    return object.Fail(Error{ErrorCode::kLimitExceeded,
                             fmt::format("{} has {} keys; {} are read", path, value.size(), model::kMostWorkloadKeys)});
  }
  for (const auto& [key, member] : value.members()) {
    const std::string where = fmt::format("{}.{}", path, Printable(key.substr(0, model::kMostWorkloadKeyBytes)));
    const std::optional<std::string_view> text = member.Text();
    if (key.empty() || key.size() > model::kMostWorkloadKeyBytes || !IsWord(key, model::kWorkloadKeyAlso)) {
      return object.Fail(Error{ErrorCode::kCorruptData,
                               fmt::format("{} is no key of a workload: letters, digits and \"{}\", {} at most", where,
                                           model::kWorkloadKeyAlso, model::kMostWorkloadKeyBytes)});
    }
    if (!text || text->size() > model::kMostWorkloadValueBytes) {
      return object.Fail(Error{ErrorCode::kCorruptData, fmt::format("{} is not a text of up to {} bytes", where,
                                                                    model::kMostWorkloadValueBytes)});
    }
    if (!workload->emplace(key, ValidUtf8(*text)).second) {
      return object.Fail(Error{ErrorCode::kCorruptData, where + " is there twice"});
    }
  }
}

void ReadJob(JsonObject& job, StageSummary* summary) {
  job.Int("world_size", 1, kMostRanks, &summary->world_size);
  job.Int("exit_status", 0, 255, &summary->facts.exit_status);
  ReadWorkload(job.Object("workload"), job, job.Path("workload"), &summary->facts.workload);
}

void ReadRank(JsonObject& object, StageSummary* summary) {
  int64_t rank = 0;
  bool ended_in_order = false;
  Need(object, "rank", 0, kMostRanks, &rank);
  object.Bool("ended_in_order", &ended_in_order);
  summary->ranks.push_back(static_cast<int32_t>(rank));
  if (!ended_in_order) summary->running_ranks.push_back(static_cast<int32_t>(rank));
}

void ReadStep(JsonObject& object, StageSummary* summary) {
  SummaryStep step;
  Need(object, "step", INT64_MIN, kAnyInt, &step.number);
  Need(object, "ns", 0, kMostSummaryNs, &step.ns);
  if (!summary->steps.empty() && step.number <= summary->steps.back().number) {
    object.Fail(ErrorCode::kCorruptData, "step", "is not above the step before it");
  }
  summary->steps.push_back(step);
}

void ReadWindow(JsonObject& object, StageSummary* summary) {
  SummaryWindow window;
  Need(object, "first_step", INT64_MIN, kAnyInt, &window.first_step);
  Need(object, "last_step", window.first_step, kAnyInt, &window.last_step);
  Need(object, "step_count", 1, kMostSteps, &window.step_count);
  Need(object, "ns", 0, kMostSummaryNs, &window.ns);
  if (!summary->windows.empty() && window.first_step <= summary->windows.back().last_step) {
    object.Fail(ErrorCode::kCorruptData, "first_step", "lies in the window before it");
  }
  object.RequireList("frontier_ns");
  size_t i = 0;
  object.List("frontier_ns", model::kStages.size(), [&](JsonValue value, const std::string& path) -> Status {
    const std::optional<int64_t> ns = value.Int();
    if (!ns || *ns < 0 || *ns > kMostSummaryNs)
      return Error{ErrorCode::kCorruptData, path + " is no length of time in ns"};
    window.frontier_ns[i++] = *ns;
    return {};
  });
  if (i != model::kStages.size()) object.Expected("frontier_ns", fmt::format("{} stages", model::kStages.size()));
  summary->windows.push_back(window);
}

void ReadPeak(JsonObject& rank, std::string_view name, std::optional<int64_t>* most) {
  const auto take = [&](JsonObject& object, std::string_view member) {
    std::optional<int64_t> bytes;
    object.Int(member, 0, kMostSummaryNs, &bytes);
    if (bytes) *most = std::max(most->value_or(0), *bytes);
  };
  rank.Inner(name, [&](JsonObject& use) { take(use, "peak_bytes"); });
  if (name == "allocated") take(rank, "peak_allocated_bytes");
}

void ReadData(JsonObject& data, StageSummary* summary) {
  for (const char* const name : {"verdict", "ranks", "steps", "windows"}) data.RequireList(name);
  data.Inner("verdict", [&](JsonObject& verdict) { verdict.Text("sentence", &summary->verdict, kMostTextBytes); });
  data.Objects("ranks", kMostRanks, [&](JsonObject& rank) { ReadRank(rank, summary); });
  summary->world_size = static_cast<int64_t>(summary->ranks.size());
  data.Inner("job", [&](JsonObject& job) { ReadJob(job, summary); });
  data.Objects("steps", kMostListedSteps, [&](JsonObject& step) { ReadStep(step, summary); });
  data.Objects("windows", kMostWindows, [&](JsonObject& window) { ReadWindow(window, summary); });
  data.Inner("memory", [&](JsonObject& memory) {
    memory.Objects("ranks", kMostRanks, [&](JsonObject& rank) {
      ReadPeak(rank, "resident", &summary->resident_bytes);
      ReadPeak(rank, "allocated", &summary->allocated_bytes);
      ReadPeak(rank, "reserved", &summary->reserved_bytes);
    });
  });
}

Error In(Error error, const std::string& source) {
  error.file = source;
  return error;
}

Result<JsonTree> ParseFile(std::string_view json, const std::string& source) {
  Result<JsonTree> tree = ParseJson(json, {.most_bytes = kMostBytes, .most_depth = 16, .checks_encoding = true});
  if (!tree) return In(std::move(tree).error(), source);
  return tree;
}

/// Names of traces end so, perhaps with what they are compressed by behind it.
bool IsPerhapsATrace(const std::string& name) {
  return name != kSummaryFile && name != kWorkloadFile &&
         (name.find(".json") != std::string::npos || name.find(".pftrace") != std::string::npos ||
          name.find(".sqlite") != std::string::npos || name.find(".nsys-rep") != std::string::npos);
}

bool HoldsTraces(const std::string& folder) {
  std::error_code failed;
  for (std::filesystem::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    if (IsPerhapsATrace(at->path().filename().string())) return true;
  }
  return false;
}

std::string SummaryPath(const std::string& path) {
  std::error_code failed;
  return std::filesystem::is_directory(path, failed) ? path + "/" + kSummaryFile : path;
}

}  // namespace

Result<StageSummary> ParseStageSummary(std::string_view json, const std::string& source) {
  ASSIGN_OR_RETURN(const JsonTree tree, ParseFile(json, source));
  JsonObject document(tree.root(), "");
  StageSummary summary{.source = source};
  std::string schema;
  document.Text("schema", &schema, 100);
  if (!document.failed() && schema != kSchema) {
    return Error{.code = ErrorCode::kUnsupported,
                 .message = fmt::format("schema: expected \"{}\", as lockstep run --stages=DIR and lockstep stages "
                                        "--json write it{}",
                                        kSchema, schema.empty() ? "" : "; it is \"" + Printable(schema) + "\""),
                 .file = source};
  }
  document.Bool("partial", &summary.is_partial);
  document.Required("data");
  document.Inner("data", [&](JsonObject& data) { ReadData(data, &summary); });
  if (const Status status = document.status(); !status) return In(status.error(), source);
  return summary;
}

Result<StageSummary> ReadStageSummary(const std::string& path) {
  const std::string file = SummaryPath(path);
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid()) return SystemError(file, "open", errno);
  const std::optional<std::string> json = ReadSome(fd.get(), kMostBytes + 1);
  if (!json) return SystemError(file, "read", errno);
  return ParseStageSummary(*json, file);
}

bool IsStageSummary(const std::string& path) {
  const std::string file = SummaryPath(path);
  std::error_code failed;
  if (!std::filesystem::is_regular_file(file, failed)) return false;
  const std::string head = ReadSmallFile(file, kHeadBytes).value_or("");
  const std::string schema = fmt::format("\"{}\"", kSchema);
  return head.find(schema) != std::string::npos && (file == path || !HoldsTraces(path));
}

Result<model::Workload> ParseWorkload(std::string_view json, const std::string& source) {
  ASSIGN_OR_RETURN(const JsonTree tree, ParseFile(json, source));
  JsonObject document(tree.root(), "");
  model::Workload workload;
  ReadWorkload(tree.root(), document, "workload", &workload);
  if (const Status status = document.status(); !status) return In(status.error(), source);
  return workload;
}

}  // namespace lockstep::ingest
