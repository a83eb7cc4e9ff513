#include <fmt/format.h>

#include <optional>

#include "base/json_writer.h"
#include "base/utf8.h"
#include "node/control/api/json.h"
#include "node/control/api/parse_json.h"

namespace lockstep::control {
namespace {

void WriteTexts(std::string_view name, const std::vector<std::string>& texts, JsonWriter* json) {
  json->Key(name).StartArray();
  for (const std::string& text : texts) json->Text(text);
  json->EndArray();
}

void ReadTexts(JsonObject* reader, std::string_view name, std::vector<std::string>* texts) {
  reader->List(name, 1024, [&](JsonValue value, const std::string& where) -> Status {
    if (!value.IsText()) return Error{ErrorCode::kCorruptData, where + " is not a string"};
    std::string text = ValidUtf8(*value.Text());
    if (text.size() > JsonObject::kTextBytes) return Error{ErrorCode::kInvalidArgument, where + " is too long"};
    texts->push_back(std::move(text));
    return {};
  });
}

std::optional<ErrorCode> FindErrorCode(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::kCancelled); ++i) {
    if (name == ErrorCodeName(static_cast<ErrorCode>(i))) return static_cast<ErrorCode>(i);
  }
  return std::nullopt;
}

Error NoError(std::string_view json) {
  constexpr size_t kShown = 80;
  return Error{ErrorCode::kCorruptData,
               json.empty() ? "an empty answer"
                            : fmt::format("an answer that is not an error of lockstepd: {}{}",
                                          Printable(json.substr(0, kShown)), json.size() > kShown ? "..." : "")};
}

}  // namespace

std::string ToJson(const NodeStatus& status) {
  JsonWriter json;
  json.StartObject().Key("host").Text(status.host).Key("version").Text(status.version);
  json.Key("daemon_pid").Int(status.daemon_pid).Key("daemon_uid").Uint(status.daemon_uid);
  json.Key("started_unix_ns").Int(status.started_unix_ns).Key("now_unix_ns").Int(status.now_unix_ns);
  WriteTexts("kineto_sockets", status.kineto_sockets, &json);
  json.Key("base_config").TextOrNull(status.base_config).Key("process_count").Uint(status.process_count);
  json.Key("running_capture_count").Uint(status.running_capture_count);
  json.Key("ptrace_scope").Optional(status.ptrace_scope).Key("may_trace_all").Bool(status.may_trace_all);
  json.Key("allows_unsafe_captures").Bool(status.allows_unsafe_captures);
  WriteTexts("problems", status.problems, &json);
  json.EndObject();
  return json.Take();
}

Result<NodeStatus> ReadNodeStatus(std::string_view json) {
  ASSIGN_OR_RETURN(const JsonTree document, ParseJson(json));
  JsonObject reader(document.root(), "");
  NodeStatus status;
  reader.Text("host", &status.host);
  reader.Require("host", !status.host.empty());
  reader.Text("version", &status.version);
  reader.Int("daemon_pid", 0, INT32_MAX, &status.daemon_pid);
  reader.Int("daemon_uid", 0, UINT32_MAX, &status.daemon_uid);
  reader.Int("started_unix_ns", 0, kAnyInt, &status.started_unix_ns);
  reader.Int("now_unix_ns", 0, kAnyInt, &status.now_unix_ns);
  ReadTexts(&reader, "kineto_sockets", &status.kineto_sockets);
  reader.Text("base_config", &status.base_config);
  reader.Uint("process_count", &status.process_count);
  reader.Uint("running_capture_count", &status.running_capture_count);
  reader.Int("ptrace_scope", 0, 3, &status.ptrace_scope);
  reader.Bool("may_trace_all", &status.may_trace_all);
  reader.Bool("allows_unsafe_captures", &status.allows_unsafe_captures);
  ReadTexts(&reader, "problems", &status.problems);
  RETURN_IF_ERROR(reader.status());
  return status;
}

std::string ToJson(const Error& error) {
  JsonWriter json;
  json.StartObject().Key("error").StartObject().Key("code").Text(ErrorCodeName(error.code));
  json.Key("message").Text(error.ToString()).EndObject().EndObject();
  return json.Take();
}

Error ReadError(std::string_view json) {
  const Result<JsonTree> document = ParseJson(json);
  if (!document) return NoError(json);
  JsonObject reader(document->root(), "");
  const JsonValue object = reader.Required("error");
  if (!object) return NoError(json);
  JsonObject member(object, "error");
  std::string code;
  Error error;
  member.Text("code", &code, 64);
  member.Text("message", &error.message);
  if (member.failed() || code.empty()) return NoError(json);
  error.code = FindErrorCode(code).value_or(ErrorCode::kIo);  // A code of a newer version: its message says enough.
  return error;
}

}  // namespace lockstep::control
