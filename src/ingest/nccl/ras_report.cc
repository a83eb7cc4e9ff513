#include "ingest/nccl/ras_report.h"

#include <rapidjson/document.h>
#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "ingest/nccl/log_line.h"
#include "ingest/nccl/ras_text.h"

namespace lockstep::ingest {
namespace {

using evidence::RasCommunicator;
using evidence::RasRank;
using evidence::RasReport;
using rapidjson::Value;

constexpr size_t kByteLimit = size_t{64} << 20;
constexpr size_t kDocumentLimit = 100'000;

const Value* Member(const Value& object, const char* name) {
  if (!object.IsObject()) return nullptr;
  const auto found = object.FindMember(name);
  return found == object.MemberEnd() ? nullptr : &found->value;
}

std::string Text(const Value& object, const char* name) {
  const Value* value = Member(object, name);
  return value != nullptr && value->IsString() ? std::string(value->GetString(), value->GetStringLength())
                                               : std::string();
}

std::optional<int64_t> Number(const Value& object, const char* name) {
  const Value* value = Member(object, name);
  if (value == nullptr || !value->IsInt64()) return {};
  return value->GetInt64();
}

int32_t SmallNumber(const Value& object, const char* name, int32_t otherwise) {
  const std::optional<int64_t> number = Number(object, name);
  return number && *number >= INT32_MIN && *number <= INT32_MAX ? static_cast<int32_t>(*number) : otherwise;
}

bool Flag(const Value& object, const char* name) {
  const Value* value = Member(object, name);
  return value != nullptr && value->IsBool() && value->GetBool();
}

/// RAS's own words for a rank's state, from the flags that its JSON gives instead. 7 is ncclInProgress.
std::string StatusOf(const Value& rank) {
  const Value* status = Member(rank, "status");
  if (status == nullptr) return "";
  if (status->IsString()) return status->GetString();
  if (!status->IsObject()) return "";
  if (Flag(*status, "abort_flag")) return "ABORT";
  const int64_t async_error = Number(*status, "async_error").value_or(0);
  const int64_t init_state = Number(*status, "init_state").value_or(0);
  if (async_error != 0 && async_error != 7) return "ERROR";
  if (init_state == 7) return "INIT";
  if (init_state != 0) return "ERROR";
  return Flag(*status, "finalize_called") || Flag(*status, "destroy_flag") ? "FINALIZE" : "RUNNING";
}

RasRank ReadRank(const Value& json) {
  RasRank rank;
  rank.rank = SmallNumber(json, "rank", -1);
  rank.host = Text(json, "host");
  rank.pid = SmallNumber(json, "pid", 0);
  rank.status = StatusOf(json);
  if (const Value* counts = Member(json, "collective_counts"); counts != nullptr && counts->IsObject()) {
    for (const auto& count : counts->GetObject()) {
      if (count.value.IsInt64()) rank.operation_counts.emplace_back(count.name.GetString(), count.value.GetInt64());
    }
  }
  return rank;
}

void ReadMissingRank(const Value& json, RasCommunicator& communicator) {
  RasRank rank = ReadRank(json);
  const Value* status = Member(json, "status");
  const bool dead = status != nullptr && Flag(*status, "considered_dead");
  rank.status = dead ? "DEAD" : "MISSING";
  (dead ? communicator.dead_ranks : communicator.missing_ranks).push_back(rank.rank);
  communicator.ranks.push_back(std::move(rank));
}

RasCommunicator ReadCommunicator(const Value& json) {
  RasCommunicator communicator;
  communicator.hash = Text(json, "hash");
  communicator.size = Number(json, "size").value_or(0);
  if (const Value* ranks = Member(json, "ranks"); ranks != nullptr && ranks->IsArray()) {
    for (const Value& rank : ranks->GetArray()) communicator.ranks.push_back(ReadRank(rank));
  }
  if (const Value* ranks = Member(json, "missing_ranks"); ranks != nullptr && ranks->IsArray()) {
    for (const Value& rank : ranks->GetArray()) ReadMissingRank(rank, communicator);
  }
  return communicator;
}

/// {"event": "PEER_DEAD", "peer": {...}} of monitor mode.
std::string EventSentence(const Value& json) {
  std::string sentence = Text(json, "event");
  if (const Value* peer = Member(json, "peer"); peer != nullptr) {
    sentence += ": process " + std::to_string(Number(*peer, "pid").value_or(0)) + " on node " + Text(*peer, "host");
  }
  if (const std::string details = Text(json, "details"); !details.empty()) sentence += ", " + details;
  return sentence;
}

bool ReadDocument(const Value& json, RasReport& report) {
  if (!json.IsObject()) return false;
  if (report.nccl_version.empty()) report.nccl_version = Text(json, "nccl_version");
  if (report.collected_unix_ns == 0) report.collected_unix_ns = PrefixTime(Text(json, "timestamp")).value_or(0);
  if (Member(json, "event") != nullptr) {
    if (const Value* peer = Member(json, "peer"); peer != nullptr && Text(json, "event") == "PEER_DEAD") {
      report.dead_peers.push_back({Text(*peer, "host"), SmallNumber(*peer, "pid", 0)});
    }
    (Text(json, "event").find("DEAD") != std::string::npos ? report.errors : report.warnings)
        .push_back(EventSentence(json));
    return true;
  }
  const Value* communicators = Member(json, "communicators");
  if (communicators == nullptr || !communicators->IsArray()) return false;
  for (const Value& communicator : communicators->GetArray()) {
    report.communicators.push_back(ReadCommunicator(communicator));
    const RasCommunicator& read = report.communicators.back();
    if (!read.missing_ranks.empty() || !read.dead_ranks.empty()) {
      report.errors.push_back(read.hash +
                              " INCOMPLETE: " + std::to_string(read.missing_ranks.size() + read.dead_ranks.size()) +
                              " of " + std::to_string(read.size) + " ranks do not answer");
    }
  }
  std::set<std::pair<std::string, int32_t>> processes;
  for (const RasCommunicator& communicator : report.communicators) {
    for (const RasRank& rank : communicator.ranks) processes.emplace(rank.host, rank.pid);
  }
  if (!processes.empty()) report.rank_count = static_cast<int32_t>(processes.size());
  if (const Value* ras = Member(json, "ras"); ras != nullptr) {
    const int64_t timeouts = Number(*ras, "timeouts_count").value_or(0);
    if (timeouts > 0) report.warnings.push_back("TIMEOUT: " + std::to_string(timeouts) + " while RAS gathered data");
  }
  return true;
}

Result<RasReport> ReadRasJson(std::string_view text) {
  RasReport report;
  rapidjson::MemoryStream stream(text.data(), text.size());
  bool recognised = false;
  for (size_t count = 0; count < kDocumentLimit; ++count) {
    while (stream.Tell() < text.size() && text[stream.Tell()] != '{') stream.Take();
    if (stream.Tell() >= text.size()) break;
    rapidjson::Document document;
    constexpr unsigned kFlags =
        rapidjson::kParseStopWhenDoneFlag | rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;
    document.ParseStream<kFlags, rapidjson::UTF8<>>(stream);
    if (document.HasParseError()) {
      return Error{.code = ErrorCode::kCorruptData,
                   .message = std::string("RAS's JSON: ") + rapidjson::GetParseError_En(document.GetParseError()) +
                              "; the answer was probably cut, ask again with a longer time-out",
                   .byte_offset = document.GetErrorOffset()};
    }
    recognised |= ReadDocument(document, report);
  }
  if (recognised) return report;
  return Error{ErrorCode::kUnsupported,
               "this JSON is not an answer of NCCL's RAS: it has neither communicators nor events"};
}

}  // namespace

bool LooksLikeRasReport(std::string_view head) {
  head = head.substr(0, 4096);
  while (!head.empty() && (head.front() == ' ' || head.front() == '\n' || head.front() == '\r')) head.remove_prefix(1);
  if (head.starts_with("SERVER PROTOCOL ") || head.starts_with("RAS Monitor Mode")) return true;
  if (head.starts_with('{')) {
    return (head.find("\"nccl_version\"") != std::string_view::npos &&
            head.find("\"communicators") != std::string_view::npos) ||
           (head.find("\"event\"") != std::string_view::npos && head.find("\"PEER_") != std::string_view::npos);
  }
  return head.find("\nCommunicators...") != std::string_view::npos ||
         (head.find("Job summary\n===") != std::string_view::npos) ||
         (head.find("in group  per comm  per node") != std::string_view::npos);
}

Result<RasReport> ReadRasReport(std::string_view text) {
  if (text.size() > kByteLimit) {
    return Error{ErrorCode::kLimitExceeded, "an answer of RAS above 64 MiB is not read"};
  }
  // What the protocol says before the answer ("SERVER PROTOCOL 2", "OK") is not JSON.
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    const bool protocol = line.starts_with("SERVER PROTOCOL") || line == "OK" || line == "OK\r" || line == "\r" ||
                          line.find_first_not_of(" \t\r") == std::string_view::npos;
    if (!protocol || end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  const size_t first = rest.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && rest[first] == '{') return ReadRasJson(rest);
  RasReport report;
  if (ReadRasText(rest, report)) return report;
  return Error{ErrorCode::kUnsupported,
               "no answer of NCCL's RAS; save what `ncclras -v` prints, or `ncclras -f json -v`"};
}

}  // namespace lockstep::ingest
