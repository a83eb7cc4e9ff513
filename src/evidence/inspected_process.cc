#include "evidence/inspected_process.h"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "base/base64.h"
#include "base/utf8.h"

namespace lockstep::evidence {
namespace {

/// Fields are left out where nothing is known: absent and unknown are the same to the reader.
class Writer {
 public:
  std::string Take() const { return {buffer_.GetString(), buffer_.GetSize()}; }
  void Key(std::string_view name) { json_.Key(name.data(), static_cast<rapidjson::SizeType>(name.size())); }
  void Text(std::string_view value) {
    const std::string valid = ValidUtf8(value);
    json_.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
  }
  void Field(std::string_view name, std::string_view value) {
    if (value.empty()) return;
    Key(name);
    Text(value);
  }
  void Field(std::string_view name, int64_t value) {
    Key(name);
    json_.Int64(value);
  }
  void Flag(std::string_view name, bool value) {
    Key(name);
    json_.Bool(value);
  }
  void Letter(std::string_view name, char value) { Field(name, std::string_view(&value, 1)); }
  template <typename T>
  void Optional(std::string_view name, const std::optional<T>& value) {
    if (!value) return;
    Key(name);
    if constexpr (std::is_unsigned_v<T>) {
      json_.Uint64(*value);
    } else {
      json_.Int64(*value);
    }
  }
  template <typename Rows, typename WriteRow>
  void Array(std::string_view name, const Rows& rows, const WriteRow& write_row) {
    if (rows.empty()) return;
    Key(name);
    json_.StartArray();
    for (const auto& row : rows) write_row(row);
    json_.EndArray();
  }
  void Start() { json_.StartObject(); }
  void End() { json_.EndObject(); }

 private:
  rapidjson::StringBuffer buffer_;
  rapidjson::Writer<rapidjson::StringBuffer> json_{buffer_};
};

void WriteFrames(Writer& json, const char* name, const std::vector<StackFrame>& frames) {
  json.Array(name, frames, [&](const StackFrame& frame) {
    json.Start();
    json.Field("function", frame.function);
    json.Field("file", frame.file);
    if (frame.line > 0) json.Field("line", int64_t{frame.line});
    json.End();
  });
}

void WriteThread(Writer& json, const ThreadStack& thread) {
  json.Start();
  if (thread.tid != 0) json.Field("tid", thread.tid);
  json.Field("name", thread.name);
  json.Flag("is_main", thread.is_main);
  json.Flag("holds_gil", thread.holds_gil);
  json.Letter("state", thread.state);
  json.Field("wait_channel", thread.wait_channel);
  json.Field("syscall", thread.syscall);
  WriteFrames(json, "python", thread.python);
  WriteFrames(json, "native", thread.native);
  json.Field("source", thread.source);
  json.End();
}

void WriteState(Writer& json, const ProcessState& state) {
  json.Key("state");
  json.Start();
  json.Letter("state", state.state);
  json.Field("window_ns", state.window_ns);
  json.Optional("cpu_ns", state.cpu_ns);
  json.Optional("context_switches", state.context_switches);
  json.Optional("read_bytes", state.read_bytes);
  json.Optional("write_bytes", state.write_bytes);
  json.Optional("resident_bytes", state.resident_bytes);
  json.Optional("memory_limit_bytes", state.memory_limit_bytes);
  json.Optional("oom_kill_count", state.oom_kill_count);
  json.Array("sockets", state.sockets, [&](const SocketState& socket) {
    json.Start();
    json.Field("local", socket.local);
    json.Field("remote", socket.remote);
    json.Field("state", socket.state);
    json.Optional("send_queue_bytes", std::optional(socket.send_queue_bytes));
    json.Optional("receive_queue_bytes", std::optional(socket.receive_queue_bytes));
    json.End();
  });
  json.Array("devices", state.devices, [&](const DeviceState& device) {
    json.Start();
    json.Field("kind", device.kind);
    json.Field("name", device.name);
    json.Field("state", device.state);
    json.Array("facts", device.facts, [&](const std::pair<std::string, std::string>& fact) {
      json.Start();
      json.Field("name", fact.first);
      json.Field("value", fact.second);
      json.End();
    });
    json.End();
  });
  json.End();
}

}  // namespace

std::string WriteInspectedProcess(const InspectedProcess& process, bool with_record) {
  Writer json;
  json.Start();
  json.Field("schema", "lockstep.inspection/1");
  json.Field("pid", int64_t{process.pid});
  json.Optional("start_ticks", std::optional(process.start_ticks));
  json.Field("host", process.host);
  json.Optional("rank", process.rank);
  json.Optional("local_rank", process.local_rank);
  json.Optional("world_size", process.world_size);
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
    json.Start();
    json.Optional("rank", missing.rank);
    json.Field("host", missing.host);
    json.Field("what", missing.what);
    json.Field("reason", missing.reason);
    json.Field("remedy", missing.remedy);
    json.End();
  });
  json.End();
  return json.Take();
}

}  // namespace lockstep::evidence
