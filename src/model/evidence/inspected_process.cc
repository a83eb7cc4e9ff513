#include "model/evidence/inspected_process.h"

#include <type_traits>
#include <utility>

#include "base/base64.h"
#include "base/json_object.h"
#include "base/json_writer.h"
#include "model/evidence/parse_json.h"

namespace lockstep::evidence {
namespace {

constexpr size_t kMaxThreads = 65'536;
constexpr size_t kMaxFrames = 4'096;
constexpr size_t kMaxRows = 65'536;

/// Fields are left out where nothing is known: absent and unknown are the same to the reader.
class FieldWriter : public JsonInMemory<FieldWriter> {
 public:
  explicit FieldWriter(bool with_record) : with_record_(with_record) {}
  bool with_record() const { return with_record_; }

  void Field(std::string_view name, std::string_view value) {
    if (!value.empty()) Key(name).Text(value);
  }
  template <typename T>
  requires std::is_integral_v<T>
  void Field(std::string_view name, T value) { Key(name).Optional(std::optional(value)); }
  template <typename T>
  void Field(std::string_view name, const std::optional<T>& value) {
    if (value) Key(name).Optional(value);
  }
  /// A number that is 0 where it is not known.
  void Known(std::string_view name, int64_t value) {
    if (value > 0) Field(name, value);
  }
  void Letter(std::string_view name, char value) { Field(name, std::string_view(&value, 1)); }
  void Bytes(std::string_view name, const std::string& value) { Field(name, EncodeBase64(value)); }
  void Life(std::string_view name, Liveness value) { Field(name, LivenessName(value)); }
  template <typename Row, typename Fields>
  void Rows(std::string_view name, size_t /*most*/, const std::vector<Row>& rows, const Fields& fields) {
    if (rows.empty()) return;
    Key(name).StartArray();
    for (const Row& row : rows) {
      StartObject();
      fields(*this, row);
      EndObject();
    }
    EndArray();
  }
  template <typename T, typename Fields>
  void Inner(std::string_view name, const std::optional<T>& value, const Fields& fields) {
    if (!value) return;
    Key(name).StartObject();
    fields(*this, *value);
    EndObject();
  }

 private:
  const bool with_record_;
};

class FieldReader {
 public:
  explicit FieldReader(JsonObject& object) : object_(object) {}
  bool with_record() const { return true; }

  template <typename T>
  void Field(std::string_view name, T& value) {
    object_.Read(name, &value);
  }
  template <typename T>
  void Known(std::string_view name, T& value) {
    object_.Read(name, &value);
  }
  void Letter(std::string_view name, char& value) {
    std::string text;
    object_.Read(name, &text);
    if (text.empty()) return;
    if (text.size() != 1) return object_.Expected(name, "a letter");
    value = text[0];
  }
  void Bytes(std::string_view name, std::string& value) {
    std::string base64;
    object_.Read(name, &base64);
    if (auto bytes = DecodeBase64(base64)) {
      value = std::move(*bytes);
    } else {
      object_.Expected(name, "base64");
    }
  }
  void Life(std::string_view name, Liveness& value) {
    std::string word = LivenessName(Liveness::kRunning);
    object_.Read(name, &word);
    value = Liveness::kUnknown;
    for (const Liveness liveness : {Liveness::kRunning, Liveness::kGone}) {
      if (word == LivenessName(liveness)) value = liveness;
    }
  }
  template <typename Row, typename Fields>
  void Rows(std::string_view name, size_t most, std::vector<Row>& rows, const Fields& fields) {
    object_.Objects(name, most, [&](JsonObject& object) {
      FieldReader row(object);
      fields(row, rows.emplace_back());
    });
  }
  template <typename T, typename Fields>
  void Inner(std::string_view name, std::optional<T>& value, const Fields& fields) {
    object_.Inner(name, [&](JsonObject& object) {
      FieldReader inner(object);
      fields(inner, value.emplace());
    });
  }

 private:
  JsonObject& object_;
};

// What the objects hold, for the writer and the reader.

constexpr auto kFrameFields = [](auto& form, auto& frame) {
  form.Field("function", frame.function);
  form.Field("file", frame.file);
  form.Known("line", frame.line);
};

constexpr auto kThreadFields = [](auto& form, auto& thread) {
  form.Known("tid", thread.tid);
  form.Field("name", thread.name);
  form.Field("is_main", thread.is_main);
  form.Field("holds_gil", thread.holds_gil);
  form.Letter("state", thread.state);
  form.Field("wait_channel", thread.wait_channel);
  form.Field("syscall", thread.syscall);
  form.Rows("python", kMaxFrames, thread.python, kFrameFields);
  form.Rows("native", kMaxFrames, thread.native, kFrameFields);
  form.Field("source", thread.source);
};

constexpr auto kSocketFields = [](auto& form, auto& socket) {
  form.Field("local", socket.local);
  form.Field("remote", socket.remote);
  form.Field("state", socket.state);
  form.Field("send_queue_bytes", socket.send_queue_bytes);
  form.Field("receive_queue_bytes", socket.receive_queue_bytes);
};

constexpr auto kFactFields = [](auto& form, auto& fact) {
  form.Field("name", fact.first);
  form.Field("value", fact.second);
};

constexpr auto kDeviceFields = [](auto& form, auto& device) {
  form.Field("kind", device.kind);
  form.Field("name", device.name);
  form.Field("state", device.state);
  form.Rows("facts", kMaxRows, device.facts, kFactFields);
};

constexpr auto kStateFields = [](auto& form, auto& state) {
  form.Letter("state", state.state);
  form.Field("window_ns", state.window_ns);
  form.Field("cpu_ns", state.cpu_ns);
  form.Field("context_switches", state.context_switches);
  form.Field("read_bytes", state.read_bytes);
  form.Field("write_bytes", state.write_bytes);
  form.Field("resident_bytes", state.resident_bytes);
  form.Field("memory_limit_bytes", state.memory_limit_bytes);
  form.Field("oom_kill_count", state.oom_kill_count);
  form.Rows("sockets", kMaxRows, state.sockets, kSocketFields);
  form.Rows("devices", kMaxRows, state.devices, kDeviceFields);
};

constexpr auto kMissingFields = [](auto& form, auto& missing) {
  form.Field("rank", missing.rank);
  form.Field("host", missing.host);
  form.Field("what", missing.what);
  form.Field("reason", missing.reason);
  form.Field("remedy", missing.remedy);
};

constexpr auto kProcessFields = [](auto& form, auto& process) {
  form.Field("pid", process.pid);
  form.Field("start_ticks", process.start_ticks);
  form.Field("host", process.host);
  form.Field("rank", process.rank);
  form.Field("local_rank", process.local_rank);
  form.Field("world_size", process.world_size);
  form.Field("job_id", process.job_id);
  form.Field("command", process.command);
  form.Field("torch_version", process.torch_version);
  form.Life("liveness", process.liveness);
  form.Field("collected_unix_ns", process.collected_unix_ns);
  form.Field("longest_pause_ns", process.longest_pause_ns);
  form.Inner("state", process.state, kStateFields);
  form.Rows("stacks", kMaxThreads, process.stacks, kThreadFields);
  form.Field("record_format", process.record_format);
  form.Field("record_source", process.record_source);
  form.Known("record_unix_ns", process.record_unix_ns);
  form.Field("log_path", process.log_path);
  if (form.with_record()) {
    form.Bytes("record_base64", process.record_bytes);
    form.Bytes("ring_base64", process.ring_bytes);
    form.Field("log_tail", process.log_tail);
  }
  form.Rows("missing", kMaxRows, process.missing, kMissingFields);
};

}  // namespace

std::string WriteInspectedProcess(const InspectedProcess& process, bool with_record) {
  FieldWriter json(with_record);
  json.StartObject();
  json.Field("schema", "lockstep.inspection/1");
  kProcessFields(json, process);
  json.EndObject();
  return json.Take();
}

Result<InspectedProcess> ReadInspectedProcess(std::string_view json) {
  ASSIGN_OR_RETURN(const JsonTree document, ParseObject(json));
  JsonObject object(document.root(), "");
  std::string schema;
  object.Read("schema", &schema);
  if (!schema.starts_with("lockstep.inspection/")) {
    object.Expected("schema", "\"lockstep.inspection/1\"");
  }
  InspectedProcess process;
  FieldReader form(object);
  kProcessFields(form, process);
  RETURN_IF_ERROR(object.status());
  return process;
}

}  // namespace lockstep::evidence
