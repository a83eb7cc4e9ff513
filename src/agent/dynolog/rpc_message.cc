#include "agent/dynolog/rpc_message.h"

#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

namespace lockstep::agent {
namespace {

using Value = rapidjson::Value;
// Iterative: nesting costs memory in proportion to the text, and no stack. Encodings are checked, since replies and the
// audit repeat parts of a request.
constexpr unsigned kParseFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;

constexpr const char* kFailed = R"({"status":"failed"})";

std::string WrongType(const char* field, const char* wanted) {
  return std::string(R"({"status":"failed with exception = )") + field + " must be " + wanted + "\"}";
}

const Value* Member(const Value& object, const char* name) {
  const auto found = object.FindMember(name);
  return found == object.MemberEnd() ? nullptr : &found->value;
}

/// An integer field that may be absent; false: it is there and is none.
bool ReadInteger(const Value& object, const char* name, int64_t* value) {
  const Value* member = Member(object, name);
  if (member == nullptr) return true;
  if (!member->IsInt64()) return false;
  *value = member->GetInt64();
  return true;
}

RpcReading ReadTrace(const Value& object) {
  RpcRequest request;
  request.function = RpcRequest::Function::kTrace;
  const Value* config = Member(object, "config");
  const Value* pids = Member(object, "pids");
  if (config == nullptr || pids == nullptr) return {.request = {}, .refusal = kFailed};
  if (!config->IsString()) return {.request = {}, .refusal = WrongType("config", "text")};
  request.config.assign(config->GetString(), config->GetStringLength());
  if (!pids->IsArray()) return {.request = {}, .refusal = WrongType("pids", "a list of numbers")};
  for (const Value& pid : pids->GetArray()) {
    if (!pid.IsInt64()) return {.request = {}, .refusal = WrongType("pids", "a list of numbers")};
    request.pids.push_back(pid.GetInt64());
  }
  if (!ReadInteger(object, "job_id", &request.job_id))
    return {.request = {}, .refusal = WrongType("job_id", "a number")};
  if (!ReadInteger(object, "process_limit", &request.process_limit))
    return {.request = {}, .refusal = WrongType("process_limit", "a number")};
  return {.request = std::move(request)};
}

RpcReading ReadPause(const Value& object) {
  RpcRequest request;
  request.function = RpcRequest::Function::kPauseDcgm;
  if (Member(object, "duration_s") == nullptr) return {.request = {}, .refusal = kFailed};
  if (!ReadInteger(object, "duration_s", &request.duration_s))
    return {.request = {}, .refusal = WrongType("duration_s", "a number")};
  return {.request = std::move(request)};
}

template <typename Write>
std::string Written(Write write) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  writer.StartObject();
  write(writer);
  writer.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace

RpcReading ReadRpcRequest(std::string_view json) {
  rapidjson::Document document;
  document.Parse<kParseFlags>(json.data(), json.size());
  if (document.HasParseError() || !document.IsObject()) return {};
  const Value* function = Member(document, "fn");
  if (function == nullptr || !function->IsString()) return {};
  const std::string_view name(function->GetString(), function->GetStringLength());
  if (name == "getStatus") return {.request = RpcRequest{.function = RpcRequest::Function::kStatus}};
  if (name == "getVersion") return {.request = RpcRequest{.function = RpcRequest::Function::kVersion}};
  if (name == "setKinetOnDemandRequest") return ReadTrace(document);  // The name is Dynolog's.
  if (name == "dcgmProfPause") return ReadPause(document);
  if (name == "dcgmProfResume") return {.request = RpcRequest{.function = RpcRequest::Function::kResumeDcgm}};
  return {};
}

std::string StatusReply() { return R"({"status":1})"; }

std::string VersionReply(std::string_view version) {
  return Written([&](auto& writer) {
    writer.Key("version");
    writer.String(version.data(), static_cast<rapidjson::SizeType>(version.size()));
  });
}

std::string TraceReplyText(const TraceReply& reply) {
  return Written([&](auto& writer) {
    const auto list = [&](const char* name, const std::vector<int32_t>& pids) {
      writer.Key(name);
      writer.StartArray();
      for (const int32_t pid : pids) writer.Int(pid);
      writer.EndArray();
    };
    const auto text = [&](const char* name, const std::string& value) {
      if (value.empty()) return;
      writer.Key(name);
      writer.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
    };
    writer.Key("activityProfilersBusy");
    writer.Int(reply.busy_count);
    list("activityProfilersTriggered", reply.triggered);
    text("captureId", reply.capture_id);
    text("error", reply.error);
    writer.Key("eventProfilersBusy");
    writer.Int(0);
    list("eventProfilersTriggered", {});
    list("processesMatched", reply.matched);
  });
}

std::string DcgmReply() { return R"({"status":false})"; }

}  // namespace lockstep::agent
