#include <utility>

#include "base/base64.h"
#include "base/json_object.h"
#include "model/evidence/inspected_process.h"
#include "model/evidence/parse_json.h"

namespace lockstep::evidence {
namespace {

constexpr size_t kMaxThreads = 65'536;
constexpr size_t kMaxFrames = 4'096;
constexpr size_t kMaxRows = 65'536;

void ReadLetter(const char* name, JsonObject& object, char* out) {
  std::string text;
  object.Read(name, &text);
  if (text.empty()) return;
  if (text.size() != 1) return object.Expected(name, "a letter");
  *out = text[0];
}

void ReadBase64(const char* name, JsonObject& object, std::string* out) {
  std::string base64;
  object.Read(name, &base64);
  if (auto bytes = DecodeBase64(base64)) {
    *out = std::move(*bytes);
  } else {
    object.Expected(name, "base64");
  }
}

std::vector<StackFrame> ReadFrames(JsonObject& object, const char* name) {
  std::vector<StackFrame> frames;
  object.Objects(name, kMaxFrames, [&](JsonObject& row) {
    StackFrame& frame = frames.emplace_back();
    row.Read("function", &frame.function);
    row.Read("file", &frame.file);
    row.Read("line", &frame.line);
  });
  return frames;
}

ThreadStack ReadThread(JsonObject& object) {
  ThreadStack thread;
  object.Read("tid", &thread.tid);
  object.Read("name", &thread.name);
  object.Read("is_main", &thread.is_main);
  object.Read("holds_gil", &thread.holds_gil);
  ReadLetter("state", object, &thread.state);
  object.Read("wait_channel", &thread.wait_channel);
  object.Read("syscall", &thread.syscall);
  thread.python = ReadFrames(object, "python");
  thread.native = ReadFrames(object, "native");
  object.Read("source", &thread.source);
  return thread;
}

ProcessState ReadState(JsonObject& object) {
  ProcessState state;
  ReadLetter("state", object, &state.state);
  object.Read("window_ns", &state.window_ns);
  object.Read("cpu_ns", &state.cpu_ns);
  object.Read("context_switches", &state.context_switches);
  object.Read("read_bytes", &state.read_bytes);
  object.Read("write_bytes", &state.write_bytes);
  object.Read("resident_bytes", &state.resident_bytes);
  object.Read("memory_limit_bytes", &state.memory_limit_bytes);
  object.Read("oom_kill_count", &state.oom_kill_count);
  object.Objects("sockets", kMaxRows, [&](JsonObject& row) {
    SocketState& socket = state.sockets.emplace_back();
    row.Read("local", &socket.local);
    row.Read("remote", &socket.remote);
    row.Read("state", &socket.state);
    row.Read("send_queue_bytes", &socket.send_queue_bytes);
    row.Read("receive_queue_bytes", &socket.receive_queue_bytes);
  });
  object.Objects("devices", kMaxRows, [&](JsonObject& row) {
    DeviceState& device = state.devices.emplace_back();
    row.Read("kind", &device.kind);
    row.Read("name", &device.name);
    row.Read("state", &device.state);
    row.Objects("facts", kMaxRows, [&](JsonObject& fact) {
      auto& [name, value] = device.facts.emplace_back();
      fact.Read("name", &name);
      fact.Read("value", &value);
    });
  });
  return state;
}

Liveness ReadLiveness(JsonObject& object) {
  std::string name = LivenessName(Liveness::kRunning);
  object.Read("liveness", &name);
  for (const Liveness liveness : {Liveness::kRunning, Liveness::kGone}) {
    if (name == LivenessName(liveness)) return liveness;
  }
  return Liveness::kUnknown;
}

}  // namespace

Result<InspectedProcess> ReadInspectedProcess(std::string_view json) {
  ASSIGN_OR_RETURN(const JsonTree document, ParseObject(json));
  JsonObject object(document.root(), "");
  std::string schema;
  object.Read("schema", &schema);
  if (!schema.starts_with("lockstep.inspection/")) {
    object.Expected("schema", "\"lockstep.inspection/1\"");
  }
  InspectedProcess process;
  object.Read("pid", &process.pid);
  object.Read("start_ticks", &process.start_ticks);
  object.Read("host", &process.host);
  object.Read("rank", &process.rank);
  object.Read("local_rank", &process.local_rank);
  object.Read("world_size", &process.world_size);
  object.Read("job_id", &process.job_id);
  object.Read("command", &process.command);
  object.Read("torch_version", &process.torch_version);
  process.liveness = ReadLiveness(object);
  object.Read("collected_unix_ns", &process.collected_unix_ns);
  object.Read("longest_pause_ns", &process.longest_pause_ns);
  object.Inner("state", [&](JsonObject& state) { process.state = ReadState(state); });
  object.Objects("stacks", kMaxThreads, [&](JsonObject& row) { process.stacks.push_back(ReadThread(row)); });
  object.Read("record_format", &process.record_format);
  object.Read("record_source", &process.record_source);
  object.Read("record_unix_ns", &process.record_unix_ns);
  ReadBase64("record_base64", object, &process.record_bytes);
  ReadBase64("ring_base64", object, &process.ring_bytes);
  object.Read("log_tail", &process.log_tail);
  object.Read("log_path", &process.log_path);
  object.Objects("missing", kMaxRows, [&](JsonObject& row) {
    MissingEvidence& missing = process.missing.emplace_back();
    row.Read("rank", &missing.rank);
    row.Read("host", &missing.host);
    row.Read("what", &missing.what);
    row.Read("reason", &missing.reason);
    row.Read("remedy", &missing.remedy);
  });
  RETURN_IF_ERROR(object.status());
  return process;
}

}  // namespace lockstep::evidence
