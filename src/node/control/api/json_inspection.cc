#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/nanoseconds.h"
#include "node/control/api/json.h"
#include "node/control/api/json_parts.h"
#include "node/control/api/names.h"
#include "node/control/api/parse_json.h"

namespace lockstep::control {
namespace {

using evidence::InspectedProcess;
using evidence::MissingEvidence;

constexpr size_t kMissingOfNode = 65536;
constexpr size_t kRasReplies = 16;
constexpr size_t kSpareBytes = size_t{1} << 20;  // For what stands around the processes.

void WriteGlance(const ProcessGlance& glance, JsonWriter* json) {
  json->StartObject()
      .Key("pid")
      .Int(glance.pid)
      .Key("start_ticks")
      .Uint(glance.start_ticks)
      .Key("launcher_pid")
      .Int(glance.launcher_pid);
  json->Key("uid").Uint(glance.uid);
  json->Key("rank").Optional(glance.rank).Key("world_size").Optional(glance.world_size);
  json->Key("job_kind").Text(JobKindName(glance.job_kind)).Key("job_id").TextOrNull(glance.job_id);
  json->Key("command").TextOrNull(glance.command).Key("state").TextOrNull(glance.state);
  json->Key("main_switches").Int(glance.main_switches).Key("main_cpu_ns").Int(glance.main_cpu_ns);
  json->Key("cpu_ns").Int(glance.cpu_ns).Key("threads_cpu_ns").Int(glance.threads_cpu_ns);
  json->Key("wait_channel").TextOrNull(glance.wait_channel).EndObject();
}

Status ReadGlance(JsonValue value, std::string path, ProcessGlance* glance) {
  JsonObject reader(value, std::move(path));
  reader.Int("pid", 0, INT32_MAX, &glance->pid);
  reader.Uint("start_ticks", &glance->start_ticks);
  reader.Int("launcher_pid", 0, INT32_MAX, &glance->launcher_pid);
  reader.Int("uid", 0, UINT32_MAX, &glance->uid);
  reader.Int("rank", 0, INT32_MAX, &glance->rank);
  reader.Int("world_size", 0, INT32_MAX, &glance->world_size);
  reader.Name("job_kind", kJobKinds, &glance->job_kind);
  reader.Text("job_id", &glance->job_id);
  reader.Text("command", &glance->command);
  reader.Text("state", &glance->state, 1);
  reader.Int("main_switches", 0, kAnyInt, &glance->main_switches);
  reader.Int("main_cpu_ns", 0, kAnyInt, &glance->main_cpu_ns);
  reader.Int("cpu_ns", 0, kAnyInt, &glance->cpu_ns);
  reader.Int("threads_cpu_ns", 0, kAnyInt, &glance->threads_cpu_ns);
  reader.Text("wait_channel", &glance->wait_channel, 256);
  return reader.status();
}

void WriteMissing(const MissingEvidence& missing, JsonWriter* json) {
  json->StartObject().Key("rank").Optional(missing.rank).Key("host").TextOrNull(missing.host);
  json->Key("what").Text(missing.what).Key("reason").Text(missing.reason);
  json->Key("remedy").TextOrNull(missing.remedy).EndObject();
}

Status ReadMissing(JsonValue value, std::string path, MissingEvidence* missing) {
  JsonObject reader(value, std::move(path));
  reader.Int("rank", 0, INT32_MAX, &missing->rank);
  reader.Text("host", &missing->host);
  reader.Text("what", &missing->what, 64);
  reader.Text("reason", &missing->reason);
  reader.Text("remedy", &missing->remedy);
  return reader.status();
}

void WriteRas(const RasReply& reply, JsonWriter* json) {
  json->StartObject().Key("address").Text(reply.address).Key("format").Text(reply.is_json ? "json" : "text");
  json->Key("asked_unix_ns").Int(reply.asked_unix_ns).Key("text").Text(reply.text).EndObject();
}

Status ReadRas(JsonValue value, std::string path, RasReply* reply) {
  JsonObject reader(value, std::move(path));
  std::string format;
  reader.Text("address", &reply->address, 256);
  reader.Text("format", &format, 16);
  reader.Int("asked_unix_ns", 0, kAnyInt, &reply->asked_unix_ns);
  reader.Text("text", &reply->text, kInspectionBytes);
  reply->is_json = format == "json";
  return reader.status();
}

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

std::string ToJson(const InspectionSpec& spec) {
  JsonWriter json;
  json.StartObject().Key("job_id").TextOrNull(spec.job_id);
  WritePids(spec.pids, &json);
  WriteRanks(spec.ranks, &json);
  json.Key("depth").Text(kInspectionDepths.Name(spec.depth)).Key("python_stacks").Bool(spec.python_stacks);
  json.Key("native_stacks").Bool(spec.native_stacks).Key("flight_record").Bool(spec.flight_record);
  json.Key("devices").Bool(spec.devices).Key("ras").Bool(spec.ras).Key("state_window_ns").Int(spec.state_window_ns);
  json.Key("deadline_ns").Int(spec.deadline_ns).EndObject();
  return json.Take();
}

Result<InspectionSpec> ReadInspectionSpec(std::string_view text) {
  ASSIGN_OR_RETURN(const JsonTree document, ParseJson(text));
  JsonObject reader(document.root(), "");
  InspectionSpec spec;
  reader.Text("job_id", &spec.job_id, 256);
  ReadPids(&reader, &spec.pids);
  ReadRanks(&reader, &spec.ranks);
  reader.Name("depth", kInspectionDepths, &spec.depth);
  reader.Bool("python_stacks", &spec.python_stacks);
  reader.Bool("native_stacks", &spec.native_stacks);
  reader.Bool("flight_record", &spec.flight_record);
  reader.Bool("devices", &spec.devices);
  reader.Bool("ras", &spec.ras);
  reader.Int("state_window_ns", kMillisecondNs, 10 * kSecondNs, &spec.state_window_ns);
  reader.Int("deadline_ns", 100 * kMillisecondNs, 30 * kSecondNs, &spec.deadline_ns);
  RETURN_IF_ERROR(reader.status());
  return spec;
}

std::string ToJson(const Inspection& inspection, size_t limit_bytes) {
  std::vector<MissingEvidence> missing = inspection.missing;
  const std::vector<std::string> processes = FitProcesses(inspection, limit_bytes, &missing);
  JsonWriter json;
  json.StartObject().Key("id").Text(inspection.id).Key("state").Text(InspectionStateName(inspection.state));
  json.Key("host").TextOrNull(inspection.host).Key("now_unix_ns").Int(inspection.now_unix_ns);
  json.Key("glances").StartArray();
  for (const ProcessGlance& glance : inspection.glances) WriteGlance(glance, &json);
  json.EndArray().Key("processes").StartArray();
  for (const std::string& process : processes) json.Raw(process);
  json.EndArray().Key("ras").StartArray();
  for (const RasReply& reply : inspection.ras) WriteRas(reply, &json);
  json.EndArray().Key("missing").StartArray();
  for (const MissingEvidence& one : missing) WriteMissing(one, &json);
  json.EndArray().EndObject();
  return json.Take();
}

Result<Inspection> ReadInspection(std::string_view text) {
  ASSIGN_OR_RETURN(const JsonTree document, ParseJson(text));
  JsonObject reader(document.root(), "");
  Inspection inspection;
  reader.Word("id", "", 64, &inspection.id);
  reader.Require("id", !inspection.id.empty());
  reader.Name("state", kInspectionStates, &inspection.state);
  reader.Text("host", &inspection.host);
  reader.Int("now_unix_ns", 0, kAnyInt, &inspection.now_unix_ns);
  reader.List("glances", kProcessesOfNode, [&](JsonValue value, std::string path) {
    return ReadGlance(value, std::move(path), &inspection.glances.emplace_back());
  });
  reader.List("processes", kProcessesOfNode, [&](JsonValue value, const std::string& path) -> Status {
    Result<InspectedProcess> process = evidence::ReadInspectedProcess(value.ToJson());
    if (!process) return Error{process.error().code, path + ": " + process.error().message};
    inspection.processes.push_back(std::move(*process));
    return {};
  });
  reader.List("ras", kRasReplies, [&](JsonValue value, std::string path) {
    return ReadRas(value, std::move(path), &inspection.ras.emplace_back());
  });
  reader.List("missing", kMissingOfNode, [&](JsonValue value, std::string path) {
    return ReadMissing(value, std::move(path), &inspection.missing.emplace_back());
  });
  RETURN_IF_ERROR(reader.status());
  return inspection;
}

}  // namespace lockstep::control
