#include "node/agent/dynolog/rpc_message.h"

#include "base/json_value.h"
#include "base/json_writer.h"

namespace lockstep::agent {
namespace {

constexpr const char* kFailed = R"({"status":"failed"})";

std::string WrongType(const char* field, const char* wanted) {
  return std::string(R"({"status":"failed with exception = )") + field + " must be " + wanted + "\"}";
}

/// An integer field that may be absent; false: it is there and is none.
bool ReadInteger(JsonValue object, const char* name, int64_t* value) {
  const JsonValue member = object[name];
  if (!member) return true;
  const std::optional<int64_t> number = member.Int();
  if (number) *value = *number;
  return number.has_value();
}

RpcReading ReadTrace(JsonValue object) {
  RpcRequest request;
  request.function = RpcRequest::Function::kTrace;
  const JsonValue config = object["config"];
  const JsonValue pids = object["pids"];
  if (!config || !pids) return {.request = {}, .refusal = kFailed};
  if (!config.IsText()) return {.request = {}, .refusal = WrongType("config", "text")};
  request.config = config.TextOrEmpty();
  if (!pids.IsArray()) return {.request = {}, .refusal = WrongType("pids", "a list of numbers")};
  for (const JsonValue pid : pids.elements()) {
    const std::optional<int64_t> number = pid.Int();
    if (!number) return {.request = {}, .refusal = WrongType("pids", "a list of numbers")};
    request.pids.push_back(*number);
  }
  if (!ReadInteger(object, "job_id", &request.job_id))
    return {.request = {}, .refusal = WrongType("job_id", "a number")};
  if (!ReadInteger(object, "process_limit", &request.process_limit))
    return {.request = {}, .refusal = WrongType("process_limit", "a number")};
  return {.request = std::move(request)};
}

RpcReading ReadPause(JsonValue object) {
  RpcRequest request;
  request.function = RpcRequest::Function::kPauseDcgm;
  if (!object["duration_s"]) return {.request = {}, .refusal = kFailed};
  if (!ReadInteger(object, "duration_s", &request.duration_s))
    return {.request = {}, .refusal = WrongType("duration_s", "a number")};
  return {.request = std::move(request)};
}

}  // namespace

RpcReading ReadRpcRequest(std::string_view json) {
  // Encodings are checked, since replies and the audit repeat parts of a request.
  const Result<JsonTree> tree = ParseJson(json, {.checks_encoding = true});
  if (!tree) return {};
  const JsonValue document = tree->root();
  const std::optional<std::string_view> name = document["fn"].Text();
  if (!name) return {};
  if (name == "getStatus") return {.request = RpcRequest{.function = RpcRequest::Function::kStatus}};
  if (name == "getVersion") return {.request = RpcRequest{.function = RpcRequest::Function::kVersion}};
  if (name == "setKinetOnDemandRequest") return ReadTrace(document);  // The name is Dynolog's.
  if (name == "dcgmProfPause") return ReadPause(document);
  if (name == "dcgmProfResume") return {.request = RpcRequest{.function = RpcRequest::Function::kResumeDcgm}};
  return {};
}

std::string StatusReply() { return R"({"status":1})"; }

std::string VersionReply(std::string_view version) {
  return JsonWriter().StartObject().Key("version").Text(version).EndObject().Take();
}

std::string TraceReplyText(const TraceReply& reply) {
  JsonWriter json;
  const auto list = [&](const char* name, const std::vector<int32_t>& pids) {
    json.Key(name).StartArray();
    for (const int32_t pid : pids) json.Int(pid);
    json.EndArray();
  };
  const auto text = [&](const char* name, const std::string& value) {
    if (!value.empty()) json.Key(name).Text(value);
  };
  json.StartObject().Key("activityProfilersBusy").Int(reply.busy_count);
  list("activityProfilersTriggered", reply.triggered);
  text("captureId", reply.capture_id);
  text("error", reply.error);
  json.Key("eventProfilersBusy").Int(0);
  list("eventProfilersTriggered", {});
  list("processesMatched", reply.matched);
  return json.EndObject().Take();
}

std::string DcgmReply() { return R"({"status":false})"; }

}  // namespace lockstep::agent
