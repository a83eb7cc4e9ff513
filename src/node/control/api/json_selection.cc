#include "node/control/api/json_parts.h"

namespace lockstep::control {

void WritePids(const std::vector<int32_t>& pids, JsonWriter* json) {
  json->Key("pids").StartArray();
  for (const int32_t pid : pids) json->Int(pid);
  json->EndArray();
}

void WriteRanks(const std::vector<std::pair<int32_t, int32_t>>& ranks, JsonWriter* json) {
  json->Key("ranks").StartArray();
  for (const auto& [first, last] : ranks) json->StartArray().Int(first).Int(last).EndArray();
  json->EndArray();
}

void ReadPids(JsonObject* reader, std::vector<int32_t>* pids) {
  pids->clear();
  reader->List("pids", kSelected, [&](JsonValue pid, const std::string& where) -> Status {
    const std::optional<int32_t> number = pid.Int32();
    if (!number) return Error{ErrorCode::kCorruptData, where + " is not a whole number of 32 bits"};
    if (*number < 1) return Error{ErrorCode::kInvalidArgument, where + " is below 1"};
    pids->push_back(*number);
    return {};
  });
}

void ReadRanks(JsonObject* reader, std::vector<std::pair<int32_t, int32_t>>* ranks) {
  ranks->clear();
  reader->List("ranks", kSelected, [&](JsonValue range, const std::string& where) -> Status {
    const bool is_pair = range.IsArray() && range.size() == 2;
    const std::optional<int32_t> first = is_pair ? range[0].Int32() : std::nullopt;
    const std::optional<int32_t> last = is_pair ? range[1].Int32() : std::nullopt;
    if (!first || !last) {
      return Error{ErrorCode::kCorruptData, where + " is not a range of two ranks, first and last"};
    }
    const std::pair<int32_t, int32_t> bounds(*first, *last);
    if (bounds.first < 0 || bounds.first > bounds.second) {
      return Error{ErrorCode::kInvalidArgument, where + " does not go up from 0"};
    }
    ranks->push_back(bounds);
    return {};
  });
}

}  // namespace lockstep::control
