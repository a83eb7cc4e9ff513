#include "ingest/flight_recorder/flight_recorder.h"

#include <algorithm>
#include <array>
#include <utility>

#include "ingest/flight_recorder/json_dump.h"
#include "ingest/flight_recorder/pickle_dump.h"

namespace lockstep::ingest {

namespace {

constexpr char kProto = '\x80';
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string_view AfterSpace(std::string_view bytes) {
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  return bytes.substr(std::min(bytes.find_first_not_of(" \t\r\n"), bytes.size()));
}

bool Holds(std::string_view bytes, std::string_view word) { return bytes.find(word) != std::string_view::npos; }

// Protocols 0 and 1 begin with the value itself: a dict or a list that gets the number 0.
bool LooksLikeOldPickle(std::string_view bytes) {
  constexpr std::array<std::string_view, 4> kBegins = {"(dp", "(lp", "}q", "]q"};
  constexpr std::array<std::string_view, 5> kOwn = {"comm_lib_version", "nccl_version", "pg_config", "record_id",
                                                    "profiling_name"};
  const std::string_view head = bytes.substr(0, 4096);
  return std::any_of(kBegins.begin(), kBegins.end(), [&](std::string_view begin) { return head.starts_with(begin); }) &&
         std::any_of(kOwn.begin(), kOwn.end(), [&](std::string_view word) { return Holds(head, word); });
}

bool LooksLikePickledDump(std::string_view bytes) {
  if (LooksLikeOldPickle(bytes)) return true;
  if (bytes.size() < 3 || bytes[0] != kProto || bytes[1] < 1 || bytes[1] > 5) return false;
  // From protocol 4 on Python puts a frame around everything.
  constexpr size_t kFrameBytes = 9;
  const size_t first = bytes[2] == '\x95' && bytes.size() > 2 + kFrameBytes ? 2 + kFrameBytes : 2;
  return bytes[first] == '}' || bytes[first] == ']' || bytes[first] == '(' || bytes[first] == 'c';
}

bool LooksLikeJsonDump(std::string_view bytes) {
  const std::string_view text = AfterSpace(bytes.substr(0, 4096));
  if (!text.starts_with('{') && !text.starts_with('[')) return false;
  // Keys are sorted: which comes first depends on the version.
  constexpr std::array kOwn = {"\"comm_lib_version\"", "\"nccl_comm_state\"", "\"pg_config\"", "\"pg_status\""};
  if (std::any_of(kOwn.begin(), kOwn.end(), [&](const char* key) { return Holds(text, key); })) return true;
  constexpr std::array kOfEntries = {"\"collective_seq_id\"", "\"profiling_name\"", "\"record_id\"", "\"time_created_"};
  const auto count =
      std::count_if(kOfEntries.begin(), kOfEntries.end(), [&](const char* key) { return Holds(text, key); });
  return count >= 2 || (count >= 1 && Holds(text, "\"entries\""));
}

}  // namespace

FlightFormat SniffFlightRecord(std::string_view first_bytes) {
  if (LooksLikePickledDump(first_bytes)) return FlightFormat::kPickle;
  return LooksLikeJsonDump(first_bytes) ? FlightFormat::kJson : FlightFormat::kNone;
}

Result<evidence::FlightRecord> ReadFlightRecord(std::string_view bytes) {
  ASSIGN_OR_RETURN(std::vector<RankedRecord> records, ReadFlightRecords(bytes));
  if (records.size() > 1) return Error{ErrorCode::kInvalidArgument, "holds the dumps of several ranks"};
  return std::move(records[0].record);
}

Result<std::vector<RankedRecord>> ReadFlightRecords(std::string_view bytes) {
  if (bytes.empty())
    return Error{ErrorCode::kCorruptData, "is empty; the process probably died before it wrote its dump"};
  if (bytes[0] == kProto) return ReadPickleDump(bytes);
  const std::string_view text = AfterSpace(bytes);
  if (text.starts_with('{') || text.starts_with('[')) {
    return ReadJsonDump(bytes.starts_with(kByteOrderMark) ? bytes.substr(kByteOrderMark.size()) : bytes);
  }
  // Older protocols have no PROTO; the reader says what it refuses.
  if (std::string_view("(c}])").find(bytes[0]) != std::string_view::npos) return ReadPickleDump(bytes);
  return Error{ErrorCode::kCorruptData, "is neither a pickle nor JSON, so it is not a flight-recorder dump"};
}

}  // namespace lockstep::ingest
