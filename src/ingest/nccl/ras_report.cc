#include "ingest/nccl/ras_report.h"

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/json_value.h"
#include "ingest/nccl/log_line.h"
#include "ingest/nccl/ras_text.h"

namespace lockstep::ingest {
namespace {

using evidence::RasCommunicator;
using evidence::RasRank;
using evidence::RasReport;

constexpr size_t kByteLimit = size_t{64} << 20;
constexpr size_t kDocumentLimit = 100'000;

bool Flag(JsonValue object, const char* name) { return object[name].Bool().value_or(false); }

/// RAS's own words for a rank's state, from the flags that its JSON gives instead. 7 is ncclInProgress.
std::string StatusOf(JsonValue rank) {
  const JsonValue status = rank["status"];
  if (!status.IsObject()) return status.TextOrEmpty();
  if (Flag(status, "abort_flag")) return "ABORT";
  const int64_t async_error = status["async_error"].Int().value_or(0);
  const int64_t init_state = status["init_state"].Int().value_or(0);
  if (async_error != 0 && async_error != 7) return "ERROR";
  if (init_state == 7) return "INIT";
  if (init_state != 0) return "ERROR";
  return Flag(status, "finalize_called") || Flag(status, "destroy_flag") ? "FINALIZE" : "RUNNING";
}

RasRank ReadRank(JsonValue json) {
  RasRank rank;
  rank.rank = json["rank"].Int32().value_or(-1);
  rank.host = json["host"].TextOrEmpty();
  rank.pid = json["pid"].Int32().value_or(0);
  rank.status = StatusOf(json);
  for (const auto& [operation, value] : json["collective_counts"].members()) {
    if (const auto count = value.Int()) rank.operation_counts.emplace_back(operation, *count);
  }
  return rank;
}

void ReadMissingRank(JsonValue json, RasCommunicator& communicator) {
  RasRank rank = ReadRank(json);
  const bool dead = Flag(json["status"], "considered_dead");
  rank.status = dead ? "DEAD" : "MISSING";
  (dead ? communicator.dead_ranks : communicator.missing_ranks).push_back(rank.rank);
  communicator.ranks.push_back(std::move(rank));
}

RasCommunicator ReadCommunicator(JsonValue json) {
  RasCommunicator communicator;
  communicator.hash = json["hash"].TextOrEmpty();
  communicator.size = json["size"].Int().value_or(0);
  for (const JsonValue rank : json["ranks"].elements()) communicator.ranks.push_back(ReadRank(rank));
  for (const JsonValue rank : json["missing_ranks"].elements()) ReadMissingRank(rank, communicator);
  return communicator;
}

/// {"event": "PEER_DEAD", "peer": {...}} of monitor mode.
std::string EventSentence(JsonValue json) {
  std::string sentence = json["event"].TextOrEmpty();
  if (const JsonValue peer = json["peer"]) {
    sentence += ": process " + std::to_string(peer["pid"].Int().value_or(0)) + " on node " + peer["host"].TextOrEmpty();
  }
  if (const std::string details = json["details"].TextOrEmpty(); !details.empty()) sentence += ", " + details;
  return sentence;
}

bool ReadDocument(JsonValue json, RasReport& report) {
  if (!json.IsObject()) return false;
  if (report.nccl_version.empty()) report.nccl_version = json["nccl_version"].TextOrEmpty();
  if (report.collected_unix_ns == 0) report.collected_unix_ns = PrefixTime(json["timestamp"].TextOrEmpty()).value_or(0);
  if (json["event"]) {
    if (const JsonValue peer = json["peer"]; peer && json["event"].Text() == "PEER_DEAD") {
      report.dead_peers.push_back({peer["host"].TextOrEmpty(), peer["pid"].Int32().value_or(0)});
    }
    (json["event"].TextOrEmpty().find("DEAD") != std::string::npos ? report.errors : report.warnings)
        .push_back(EventSentence(json));
    return true;
  }
  const JsonValue communicators = json["communicators"];
  if (!communicators.IsArray()) return false;
  for (const JsonValue communicator : communicators.elements()) {
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
  const int64_t timeouts = json.At({"ras", "timeouts_count"}).Int().value_or(0);
  if (timeouts > 0) report.warnings.push_back("TIMEOUT: " + std::to_string(timeouts) + " while RAS gathered data");
  return true;
}

Result<RasReport> ReadRasJson(std::string_view text) {
  RasReport report;
  std::string_view rest = text;
  bool recognised = false;
  for (size_t count = 0; count < kDocumentLimit; ++count) {
    const size_t begin = rest.find('{');
    if (begin == std::string_view::npos) break;
    rest.remove_prefix(begin);
    const size_t place = text.size() - rest.size();
    const Result<JsonTree> document = TakeJson(&rest);
    if (!document) {
      return Error{.code = ErrorCode::kCorruptData,
                   .message = "RAS's JSON: " + document.error().message +
                              "; the answer was probably cut, ask again with a longer time-out",
                   .byte_offset = place + document.error().byte_offset.value_or(0)};
    }
    recognised |= ReadDocument(document->root(), report);
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
