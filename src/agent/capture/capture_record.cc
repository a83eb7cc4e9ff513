#include "agent/capture/capture_record.h"

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>

#include "base/ascii.h"
#include "control/api/json.h"

namespace lockstep::agent {
namespace {

using rapidjson::Value;

constexpr int kVersion = 1;

Error Corrupt(std::string message) { return Error{.code = ErrorCode::kCorruptData, .message = std::move(message)}; }

bool IsFileName(std::string_view name) {
  return name.size() <= 255 && name != "." && name != ".." && std::all_of(name.begin(), name.end(), [](char c) {
           return IsAlphanumeric(c) || std::string_view("._-+@:,").find(c) != std::string_view::npos;
         });
}

const Value* Member(const Value& object, const char* name) {
  const auto member = object.FindMember(name);
  return member == object.MemberEnd() ? nullptr : &member->value;
}

std::string Text(const Value& object, const char* name) {
  const Value* value = Member(object, name);
  return value != nullptr && value->IsString() ? std::string(value->GetString(), value->GetStringLength()) : "";
}

int64_t Number(const Value& object, const char* name) {
  const Value* value = Member(object, name);
  return value != nullptr && value->IsInt64() ? value->GetInt64() : 0;
}

bool Truth(const Value& object, const char* name) {
  const Value* value = Member(object, name);
  return value != nullptr && value->IsBool() && value->GetBool();
}

// Reading is iterative, but copying a value recurses: bounded here, for a damaged file must not end the daemon.
bool IsShallow(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > 32) return false;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return true;
}

}  // namespace

std::string ToText(const CaptureRecord& record) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> json(buffer);
  const auto text = [&](const char* key, const std::string& value) {
    json.Key(key);
    json.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
  };
  const std::string capture = control::ToJson(record.capture);
  json.StartObject();
  json.Key("version");
  json.Int(kVersion);
  json.Key("capture");
  json.RawValue(capture.data(), capture.size(), rapidjson::kObjectType);
  json.Key("caller_uid");
  if (record.caller.uid) {
    json.Uint(*record.caller.uid);
  } else {
    json.Null();
  }
  json.Key("caller_may_trace_all");
  json.Bool(record.caller.may_trace_all);
  text("caller_name", record.caller.name);
  text("foreign_log_file", record.foreign_log_file);
  json.Key("join_until_unix_ns");
  json.Int64(record.join_until_unix_ns);
  json.Key("wait_until_unix_ns");
  json.Int64(record.wait_until_unix_ns);
  json.Key("discard");
  json.Bool(record.discard);
  json.Key("places");
  json.StartArray();
  for (const TargetPlace& place : record.places) {
    json.StartObject();
    text("folder", place.folder);
    text("log_name", place.log_name);
    text("final_name", place.final_name);
    text("trace_name", place.trace_name);
    json.Key("foreign");
    json.Bool(place.foreign);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return std::string(buffer.GetString(), buffer.GetSize()) + "\n";
}

Result<CaptureRecord> ReadRecord(std::string_view text) {
  if (!IsShallow(text)) return Corrupt("is nested more than 32 deep");
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(text.data(), text.size());
  if (document.HasParseError()) {
    return Corrupt(fmt::format("byte {}: {}", document.GetErrorOffset(), GetParseError_En(document.GetParseError())));
  }
  if (!document.IsObject()) return Corrupt("is not an object");
  const Value* version = Member(document, "version");
  if (version == nullptr || !version->IsInt()) return Corrupt("has no version");
  if (version->GetInt() != kVersion) {
    return Error{.code = ErrorCode::kUnsupported,
                 .message = fmt::format("is of version {}; this daemon reads {}", version->GetInt(), kVersion)};
  }
  const Value* capture = Member(document, "capture");
  if (capture == nullptr || !capture->IsObject()) return Corrupt("has no capture");
  CaptureRecord record;
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> json(buffer);
  capture->Accept(json);
  ASSIGN_OR_RETURN(record.capture, control::ReadCapture(std::string_view(buffer.GetString(), buffer.GetSize())));
  if (const Value* uid = Member(document, "caller_uid"); uid != nullptr && uid->IsUint()) {
    record.caller.uid = uid->GetUint();
  }
  record.caller.may_trace_all = Truth(document, "caller_may_trace_all");
  record.caller.name = Text(document, "caller_name");
  record.foreign_log_file = Text(document, "foreign_log_file");
  record.join_until_unix_ns = Number(document, "join_until_unix_ns");
  record.wait_until_unix_ns = Number(document, "wait_until_unix_ns");
  record.discard = Truth(document, "discard");
  const Value* places = Member(document, "places");
  if (places == nullptr || !places->IsArray() || places->Size() != record.capture.targets.size()) {
    return Corrupt("places are not as many as targets");
  }
  for (const Value& place : places->GetArray()) {
    if (!place.IsObject()) return Corrupt("a place is not an object");
    TargetPlace read = {.folder = Text(place, "folder"),
                        .log_name = Text(place, "log_name"),
                        .final_name = Text(place, "final_name"),
                        .trace_name = Text(place, "trace_name"),
                        .foreign = Truth(place, "foreign")};
    if (!IsFileName(read.log_name) || !IsFileName(read.final_name) || !IsFileName(read.trace_name))
      return Corrupt("a place has no file name");
    record.places.push_back(std::move(read));
  }
  return record;
}

}  // namespace lockstep::agent
