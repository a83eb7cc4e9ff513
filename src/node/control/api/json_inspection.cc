#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/nanoseconds.h"
#include "node/control/api/json.h"
#include "node/control/api/json_fields.h"
#include "node/control/api/names.h"

namespace lockstep::control {
namespace {

using evidence::InspectedProcess;
using evidence::MissingEvidence;

constexpr size_t kMissingOfNode = 65536;
constexpr size_t kRasReplies = 16;
constexpr size_t kSpareBytes = size_t{1} << 20;  // For what stands around the processes.

/// Processes as JSON, as many as fit; those that were left out are listed in `missing`.
std::vector<std::string> FitProcesses(const Inspection& inspection, size_t limit_bytes,
                                      std::vector<MissingEvidence>* missing) {
  size_t spare_bytes = kSpareBytes;
  for (const RasReply& reply : inspection.ras) spare_bytes += 2 * reply.text.size();  // Quotes and line ends escaped.
  const size_t limit = limit_bytes - std::min(limit_bytes, spare_bytes);
  std::vector<std::string> fitting;
  size_t size_bytes = 0;
  const auto lose = [&](const InspectedProcess& process, const char* what) {
    missing->push_back({.rank = process.rank,
                        .host = process.host,
                        .what = what,
                        .reason = fmt::format("the node's answer would be larger than {} MiB", limit_bytes >> 20U),
                        .remedy = "ask for fewer ranks of a node at a time: --rank"});
  };
  for (const InspectedProcess& process : inspection.processes) {
    std::string text = WriteInspectedProcess(process, true);
    if (text.size() > limit - size_bytes && (!process.record_bytes.empty() || !process.ring_bytes.empty())) {
      text = WriteInspectedProcess(process, false);
      if (text.size() <= limit - size_bytes) lose(process, "flight_recorder");
    }
    if (text.size() > limit - size_bytes) {
      lose(process, "process");
      continue;
    }
    size_bytes += text.size();
    fitting.push_back(std::move(text));
  }
  return fitting;
}

}  // namespace

const char* InspectionStateName(InspectionState state) { return kInspectionStates.Name(state); }

template <typename Json>
void Fields(Json& json, ProcessGlance& glance) {
  json.Int("pid", &glance.pid);
  json.Uint("start_ticks", &glance.start_ticks);
  json.Int("launcher_pid", &glance.launcher_pid);
  json.Int("uid", &glance.uid);
  json.Int("rank", &glance.rank);
  json.Int("world_size", &glance.world_size);
  json.Name("job_kind", kJobKinds, &glance.job_kind);
  json.TextOrNull("job_id", &glance.job_id);
  json.TextOrNull("command", &glance.command);
  json.TextOrNull("state", &glance.state, 1);
  json.Int("main_switches", &glance.main_switches);
  json.Int("main_cpu_ns", &glance.main_cpu_ns);
  json.Int("cpu_ns", &glance.cpu_ns);
  json.Int("threads_cpu_ns", &glance.threads_cpu_ns);
  json.TextOrNull("wait_channel", &glance.wait_channel, 256);
}

template <typename Json>
void Fields(Json& json, MissingEvidence& missing) {
  json.Int("rank", &missing.rank);
  json.TextOrNull("host", &missing.host);
  json.Text("what", &missing.what, 64);
  json.Text("reason", &missing.reason);
  json.TextOrNull("remedy", &missing.remedy);
}

template <typename Json>
void Fields(Json& json, RasReply& reply) {
  std::string format = Json::kReads ? "" : reply.is_json ? "json" : "text";
  json.Text("address", &reply.address, 256);
  json.Text("format", &format, 16);
  json.Int("asked_unix_ns", &reply.asked_unix_ns);
  json.Text("text", &reply.text, kInspectionBytes);
  reply.is_json = format == "json";
}

template <typename Json>
void Fields(Json& json, InspectionSpec& spec) {
  json.TextOrNull("job_id", &spec.job_id, 256);
  json.Numbers("pids", kSelected, 1, &spec.pids);
  json.Ranks("ranks", &spec.ranks);
  json.Name("depth", kInspectionDepths, &spec.depth);
  json.Bool("python_stacks", &spec.python_stacks);
  json.Bool("native_stacks", &spec.native_stacks);
  json.Bool("flight_record", &spec.flight_record);
  json.Bool("devices", &spec.devices);
  json.Bool("ras", &spec.ras);
  json.Int("state_window_ns", &spec.state_window_ns, kMillisecondNs, 10 * kSecondNs);
  json.Int("deadline_ns", &spec.deadline_ns, 100 * kMillisecondNs, 30 * kSecondNs);
}

std::string ToJson(const InspectionSpec& spec) { return WriteDocument(spec); }
Result<InspectionSpec> ReadInspectionSpec(std::string_view text) { return ReadDocument<InspectionSpec>(text); }

std::string ToJson(const Inspection& inspection, size_t limit_bytes) {
  std::vector<MissingEvidence> missing = inspection.missing;
  const std::vector<std::string> processes = FitProcesses(inspection, limit_bytes, &missing);
  JsonWriter json;
  FieldWriter fields(&json);
  json.StartObject();
  fields.Text("id", &inspection.id);
  fields.Name("state", kInspectionStates, &inspection.state);
  fields.TextOrNull("host", &inspection.host);
  fields.Int("now_unix_ns", &inspection.now_unix_ns);
  fields.Objects("glances", kProcessesOfNode, &inspection.glances);
  json.Key("processes").StartArray();
  for (const std::string& process : processes) json.Raw(process);
  json.EndArray();
  fields.Objects("ras", kRasReplies, &inspection.ras);
  fields.Objects("missing", kMissingOfNode, &missing);
  json.EndObject();
  return json.Take();
}

Result<Inspection> ReadInspection(std::string_view text) {
  ASSIGN_OR_RETURN(const JsonTree document, ParseJson(text));
  FieldReader fields(document.root(), "");
  Inspection inspection;
  fields.RequiredWord("id", "", 64, &inspection.id);
  fields.Name("state", kInspectionStates, &inspection.state);
  fields.TextOrNull("host", &inspection.host);
  fields.Int("now_unix_ns", &inspection.now_unix_ns);
  fields.Objects("glances", kProcessesOfNode, &inspection.glances);
  fields.List("processes", kProcessesOfNode, [&](JsonValue value, const std::string& path) -> Status {
    Result<InspectedProcess> process = evidence::ReadInspectedProcess(value.ToJson());
    if (!process) return Error{process.error().code, path + ": " + process.error().message};
    inspection.processes.push_back(std::move(*process));
    return {};
  });
  fields.Objects("ras", kRasReplies, &inspection.ras);
  fields.Objects("missing", kMissingOfNode, &inspection.missing);
  RETURN_IF_ERROR(fields.status());
  return inspection;
}

}  // namespace lockstep::control
