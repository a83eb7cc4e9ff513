#include <fmt/format.h>

#include <optional>

#include "base/utf8.h"
#include "node/control/api/json.h"
#include "node/control/api/json_fields.h"

namespace lockstep::control {
namespace {

constexpr size_t kNotes = 1024;  // Sockets and problems, each.

Status CheckNote(JsonValue element, const std::string& where) {
  RETURN_IF_ERROR(CheckText(element, where));
  if (ValidUtf8(*element.Text()).size() <= JsonObject::kTextBytes) return {};
  return Error{ErrorCode::kInvalidArgument, where + " is too long"};
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

template <typename Json>
void Fields(Json& json, NodeStatus& status) {
  json.Text("host", &status.host);
  json.Require("host", !status.host.empty());
  json.Text("version", &status.version);
  json.Int("daemon_pid", &status.daemon_pid);
  json.Int("daemon_uid", &status.daemon_uid);
  json.Int("started_unix_ns", &status.started_unix_ns);
  json.Int("now_unix_ns", &status.now_unix_ns);
  json.Texts("kineto_sockets", kNotes, &status.kineto_sockets, CheckNote);
  json.TextOrNull("base_config", &status.base_config);
  json.Uint("process_count", &status.process_count);
  json.Uint("running_capture_count", &status.running_capture_count);
  json.Int("ptrace_scope", &status.ptrace_scope, 0, 3);
  json.Bool("may_trace_all", &status.may_trace_all);
  json.Bool("allows_unsafe_captures", &status.allows_unsafe_captures);
  json.Texts("problems", kNotes, &status.problems, CheckNote);
}

std::string ToJson(const NodeStatus& status) { return WriteDocument(status); }
Result<NodeStatus> ReadNodeStatus(std::string_view json) { return ReadDocument<NodeStatus>(json); }

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
