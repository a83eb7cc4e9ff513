#include "base/json_writer.h"
#include "base/nanoseconds.h"
#include "base/utf8.h"
#include "node/control/api/json.h"
#include "node/control/api/json_parts.h"
#include "node/control/api/names.h"
#include "node/control/api/parse_json.h"

namespace lockstep::control {
namespace {

constexpr size_t kAncestors = 1024;  // A registration holds no more pids.
constexpr size_t kSettings = 256;
constexpr int64_t kDayNs = 24 * kHourNs;

}  // namespace

void WriteProcess(const Process& process, JsonWriter* json) {
  json->StartObject().Key("id").Text(process.id).Key("pid").Int(process.pid);
  json->Key("start_ticks").Uint(process.start_ticks).Key("uid").Uint(process.uid);
  json->Key("client_pids").StartArray();
  for (const int32_t pid : process.client_pids) json->Int(pid);
  json->EndArray();
  json->Key("user").TextOrNull(process.user).Key("host").TextOrNull(process.host);
  json->Key("role").Text(ProcessRoleName(process.role)).Key("state").Text(ProcessStateName(process.state));
  json->Key("rank").Optional(process.rank).Key("local_rank").Optional(process.local_rank);
  json->Key("world_size").Optional(process.world_size);
  json->Key("job_kind").Text(JobKindName(process.job_kind));
  json->Key("job_id").TextOrNull(process.job_id).Key("job_step").TextOrNull(process.job_step);
  json->Key("command").TextOrNull(process.command).Key("device").TextOrNull(process.device);
  json->Key("torch_version").TextOrNull(process.torch_version).Key("socket").TextOrNull(process.socket);
  json->Key("python_version").TextOrNull(process.python_version).Key("settings").StartArray();
  for (const std::string& setting : process.settings) json->Text(setting);
  json->EndArray();
  json->Key("tracer").Text(TracerName(process.tracer));
  json->Key("counts_iterations").Bool(process.counts_iterations);
  json->Key("first_poll_unix_ns").Int(process.first_poll_unix_ns);
  json->Key("last_poll_unix_ns").Int(process.last_poll_unix_ns);
  json->Key("poll_period_ns").Int(process.poll_period_ns).EndObject();
}

Status ReadProcess(JsonValue value, std::string path, Process* process) {
  JsonObject reader(value, std::move(path));
  reader.Word("id", "-_.:", 128, &process->id);
  reader.Require("id", !process->id.empty());
  reader.Int("pid", 0, INT32_MAX, &process->pid);
  reader.Uint("start_ticks", &process->start_ticks);
  reader.Int("uid", 0, UINT32_MAX, &process->uid);
  process->client_pids.clear();
  reader.List("client_pids", kAncestors, [&](JsonValue pid, const std::string& where) -> Status {
    const std::optional<int32_t> number = pid.Int32();
    if (!number) return Error{ErrorCode::kCorruptData, where + " is not a whole number of 32 bits"};
    process->client_pids.push_back(*number);
    return {};
  });
  reader.Text("user", &process->user);
  reader.Text("host", &process->host);
  reader.Name("role", kProcessRoles, &process->role);
  reader.Name("state", kProcessStates, &process->state);
  reader.Int("rank", 0, INT32_MAX, &process->rank);
  reader.Int("local_rank", 0, INT32_MAX, &process->local_rank);
  reader.Int("world_size", 0, INT32_MAX, &process->world_size);
  reader.Name("job_kind", kJobKinds, &process->job_kind);
  reader.Text("job_id", &process->job_id);
  reader.Text("job_step", &process->job_step);
  reader.Text("command", &process->command);
  reader.Text("device", &process->device);
  reader.Text("torch_version", &process->torch_version);
  reader.Text("python_version", &process->python_version);
  process->settings.clear();
  reader.List("settings", kSettings, [&](JsonValue setting, const std::string& where) -> Status {
    if (!setting.IsText()) return Error{ErrorCode::kCorruptData, where + " is not a string"};
    process->settings.push_back(ValidUtf8(*setting.Text()));
    return {};
  });
  reader.Text("socket", &process->socket);
  reader.Name("tracer", kTracers, &process->tracer);
  reader.Bool("counts_iterations", &process->counts_iterations);
  reader.Int("first_poll_unix_ns", 0, kAnyInt, &process->first_poll_unix_ns);
  reader.Int("last_poll_unix_ns", 0, kAnyInt, &process->last_poll_unix_ns);
  reader.Int("poll_period_ns", 0, kDayNs, &process->poll_period_ns);
  return reader.status();
}

std::string ToJson(const Process& process) {
  JsonWriter json;
  WriteProcess(process, &json);
  return json.Take();
}

std::string ToJson(const std::vector<Process>& processes) {
  JsonWriter json;
  json.StartObject().Key("processes").StartArray();
  for (const Process& process : processes) WriteProcess(process, &json);
  json.EndArray().EndObject();
  return json.Take();
}

Result<std::vector<Process>> ReadProcesses(std::string_view json) {
  ASSIGN_OR_RETURN(const JsonTree document, ParseJson(json));
  JsonObject reader(document.root(), "");
  std::vector<Process> processes;
  reader.List("processes", kProcessesOfNode, [&](JsonValue value, std::string path) {
    return ReadProcess(value, std::move(path), &processes.emplace_back());
  });
  reader.RequireList("processes");
  RETURN_IF_ERROR(reader.status());
  return processes;
}

}  // namespace lockstep::control
