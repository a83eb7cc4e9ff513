#include "node/agent/capture/capture_record.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/json_value.h"
#include "base/json_writer.h"
#include "node/control/api/json.h"

namespace lockstep::agent {
namespace {

constexpr int kVersion = 1;
constexpr size_t kMostDepth = 32;  ///< Reading is iterative, but copying a value recurses.

Error Corrupt(std::string message) { return Error{.code = ErrorCode::kCorruptData, .message = std::move(message)}; }

bool IsFileName(std::string_view name) {
  return name.size() <= 255 && name != "." && name != ".." && std::all_of(name.begin(), name.end(), [](char c) {
           return IsAlphanumeric(c) || std::string_view("._-+@:,").find(c) != std::string_view::npos;
         });
}

}  // namespace

std::string ToText(const CaptureRecord& record) {
  JsonWriter json;
  json.StartObject().Key("version").Int(kVersion).Key("capture").Raw(control::ToJson(record.capture));
  json.Key("caller_uid").Optional(record.caller.uid).Key("caller_may_trace_all").Bool(record.caller.may_trace_all);
  json.Key("caller_name").Text(record.caller.name).Key("foreign_log_file").Text(record.foreign_log_file);
  json.Key("join_until_unix_ns").Int(record.join_until_unix_ns);
  json.Key("wait_until_unix_ns").Int(record.wait_until_unix_ns);
  json.Key("discard").Bool(record.discard).Key("places").StartArray();
  for (const TargetPlace& place : record.places) {
    json.StartObject().Key("folder").Text(place.folder).Key("log_name").Text(place.log_name);
    json.Key("final_name").Text(place.final_name).Key("trace_name").Text(place.trace_name);
    json.Key("foreign").Bool(place.foreign).EndObject();
  }
  return json.EndArray().EndObject().Take() + "\n";
}

Result<CaptureRecord> ReadRecord(std::string_view text) {
  const Result<JsonTree> tree = ParseJson(text, {.most_depth = kMostDepth, .checks_encoding = true});
  if (!tree && tree.error().code == ErrorCode::kLimitExceeded) {
    return Corrupt(fmt::format("is nested more than {} deep", kMostDepth));
  }
  if (!tree) return Corrupt(fmt::format("byte {}: {}", tree.error().byte_offset.value_or(0), tree.error().message));
  const JsonValue document = tree->root();
  if (!document.IsObject()) return Corrupt("is not an object");
  const std::optional<int32_t> version = document["version"].Int32();
  if (!version) return Corrupt("has no version");
  if (*version != kVersion) {
    return Error{.code = ErrorCode::kUnsupported,
                 .message = fmt::format("is of version {}; this daemon reads {}", *version, kVersion)};
  }
  const JsonValue capture = document["capture"];
  if (!capture.IsObject()) return Corrupt("has no capture");
  CaptureRecord record;
  ASSIGN_OR_RETURN(record.capture, control::ReadCapture(capture.ToJson()));
  if (const auto uid = document["caller_uid"].Uint(); uid && *uid <= UINT32_MAX) {
    record.caller.uid = static_cast<uint32_t>(*uid);
  }
  record.caller.may_trace_all = document["caller_may_trace_all"].Bool().value_or(false);
  record.caller.name = document["caller_name"].TextOrEmpty();
  record.foreign_log_file = document["foreign_log_file"].TextOrEmpty();
  record.join_until_unix_ns = document["join_until_unix_ns"].Int().value_or(0);
  record.wait_until_unix_ns = document["wait_until_unix_ns"].Int().value_or(0);
  record.discard = document["discard"].Bool().value_or(false);
  const JsonValue places = document["places"];
  if (!places.IsArray() || places.size() != record.capture.targets.size()) {
    return Corrupt("places are not as many as targets");
  }
  for (const JsonValue place : places.elements()) {
    if (!place.IsObject()) return Corrupt("a place is not an object");
    TargetPlace read = {.folder = place["folder"].TextOrEmpty(),
                        .log_name = place["log_name"].TextOrEmpty(),
                        .final_name = place["final_name"].TextOrEmpty(),
                        .trace_name = place["trace_name"].TextOrEmpty(),
                        .foreign = place["foreign"].Bool().value_or(false)};
    if (!IsFileName(read.log_name) || !IsFileName(read.final_name) || !IsFileName(read.trace_name))
      return Corrupt("a place has no file name");
    record.places.push_back(std::move(read));
  }
  return record;
}

}  // namespace lockstep::agent
