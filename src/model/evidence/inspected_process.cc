#include "model/evidence/inspected_process.h"

#include "base/base64.h"
#include "base/json_writer.h"

namespace lockstep::evidence {
namespace {

/// Fields are left out where nothing is known: absent and unknown are the same to the reader.
class Writer : public JsonInMemory<Writer> {
 public:
  void Field(std::string_view name, std::string_view value) {
    if (!value.empty()) Key(name).Text(value);
  }
  void Field(std::string_view name, int64_t value) { Key(name).Int(value); }
  template <typename T>
  void Field(std::string_view name, const std::optional<T>& value) {
    if (value) Key(name).Optional(value);
  }
  void Letter(std::string_view name, char value) { Field(name, std::string_view(&value, 1)); }
  template <typename Rows, typename WriteRow>
  void Array(std::string_view name, const Rows& rows, const WriteRow& write_row) {
    if (rows.empty()) return;
    Key(name).StartArray();
    for (const auto& row : rows) write_row(row);
    EndArray();
  }
};

void WriteFrames(Writer& json, const char* name, const std::vector<StackFrame>& frames) {
  json.Array(name, frames, [&](const StackFrame& frame) {
    json.StartObject();
    json.Field("function", frame.function);
    json.Field("file", frame.file);
    if (frame.line > 0) json.Field("line", int64_t{frame.line});
    json.EndObject();
  });
}

void WriteThread(Writer& json, const ThreadStack& thread) {
  json.StartObject();
  if (thread.tid != 0) json.Field("tid", thread.tid);
  json.Field("name", thread.name);
  json.Key("is_main").Bool(thread.is_main);
  json.Key("holds_gil").Bool(thread.holds_gil);
  json.Letter("state", thread.state);
  json.Field("wait_channel", thread.wait_channel);
  json.Field("syscall", thread.syscall);
  WriteFrames(json, "python", thread.python);
  WriteFrames(json, "native", thread.native);
  json.Field("source", thread.source);
  json.EndObject();
}

void WriteState(Writer& json, const ProcessState& state) {
  json.Key("state").StartObject();
  json.Letter("state", state.state);
  json.Field("window_ns", state.window_ns);
  json.Field("cpu_ns", state.cpu_ns);
  json.Field("context_switches", state.context_switches);
  json.Field("read_bytes", state.read_bytes);
  json.Field("write_bytes", state.write_bytes);
  json.Field("resident_bytes", state.resident_bytes);
  json.Field("memory_limit_bytes", state.memory_limit_bytes);
  json.Field("oom_kill_count", state.oom_kill_count);
  json.Array("sockets", state.sockets, [&](const SocketState& socket) {
    json.StartObject();
    json.Field("local", socket.local);
    json.Field("remote", socket.remote);
    json.Field("state", socket.state);
    json.Key("send_queue_bytes").Uint(socket.send_queue_bytes);
    json.Key("receive_queue_bytes").Uint(socket.receive_queue_bytes);
    json.EndObject();
  });
  json.Array("devices", state.devices, [&](const DeviceState& device) {
    json.StartObject();
    json.Field("kind", device.kind);
    json.Field("name", device.name);
    json.Field("state", device.state);
    json.Array("facts", device.facts, [&](const std::pair<std::string, std::string>& fact) {
      json.StartObject();
      json.Field("name", fact.first);
      json.Field("value", fact.second);
      json.EndObject();
    });
    json.EndObject();
  });
  json.EndObject();
}

}  // namespace

std::string WriteInspectedProcess(const InspectedProcess& process, bool with_record) {
  Writer json;
  json.StartObject();
  json.Field("schema", "lockstep.inspection/1");
  json.Field("pid", int64_t{process.pid});
  json.Key("start_ticks").Uint(process.start_ticks);
  json.Field("host", process.host);
  json.Field("rank", process.rank);
  json.Field("local_rank", process.local_rank);
  json.Field("world_size", process.world_size);
  json.Field("job_id", process.job_id);
  json.Field("command", process.command);
  json.Field("torch_version", process.torch_version);
  json.Field("liveness", LivenessName(process.liveness));
  json.Field("collected_unix_ns", process.collected_unix_ns);
  json.Field("longest_pause_ns", process.longest_pause_ns);
  if (process.state) WriteState(json, *process.state);
  json.Array("stacks", process.stacks, [&](const ThreadStack& thread) { WriteThread(json, thread); });
  json.Field("record_format", process.record_format);
  json.Field("record_source", process.record_source);
  if (process.record_unix_ns > 0) json.Field("record_unix_ns", process.record_unix_ns);
  json.Field("log_path", process.log_path);
  if (with_record) {
    if (!process.record_bytes.empty()) json.Field("record_base64", EncodeBase64(process.record_bytes));
    if (!process.ring_bytes.empty()) json.Field("ring_base64", EncodeBase64(process.ring_bytes));
    json.Field("log_tail", process.log_tail);
  }
  json.Array("missing", process.missing, [&](const MissingEvidence& missing) {
    json.StartObject();
    json.Field("rank", missing.rank);
    json.Field("host", missing.host);
    json.Field("what", missing.what);
    json.Field("reason", missing.reason);
    json.Field("remedy", missing.remedy);
    json.EndObject();
  });
  json.EndObject();
  return json.Take();
}

}  // namespace lockstep::evidence
