#include "control/api/json_parts.h"

namespace lockstep::control {

using rapidjson::Value;

void WritePids(const std::vector<int32_t>& pids, JsonText* json) {
  json->Key("pids").BeginList();
  for (const int32_t pid : pids) json->Int(pid);
  json->EndList();
}

void WriteRanks(const std::vector<std::pair<int32_t, int32_t>>& ranks, JsonText* json) {
  json->Key("ranks").BeginList();
  for (const auto& [first, last] : ranks) json->BeginList().Int(first).Int(last).EndList();
  json->EndList();
}

void ReadPids(ObjectReader* reader, std::vector<int32_t>* pids) {
  pids->clear();
  reader->List("pids", kSelected, [&](const Value& pid, const std::string& where) -> Status {
    if (!pid.IsInt()) return Error{ErrorCode::kCorruptData, where + " is not a whole number of 32 bits"};
    if (pid.GetInt() < 1) return Error{ErrorCode::kInvalidArgument, where + " is below 1"};
    pids->push_back(pid.GetInt());
    return {};
  });
}

void ReadRanks(ObjectReader* reader, std::vector<std::pair<int32_t, int32_t>>* ranks) {
  ranks->clear();
  reader->List("ranks", kSelected, [&](const Value& range, const std::string& where) -> Status {
    if (!range.IsArray() || range.Size() != 2 || !range[0].IsInt() || !range[1].IsInt()) {
      return Error{ErrorCode::kCorruptData, where + " is not a range of two ranks, first and last"};
    }
    const std::pair<int32_t, int32_t> bounds(range[0].GetInt(), range[1].GetInt());
    if (bounds.first < 0 || bounds.first > bounds.second) {
      return Error{ErrorCode::kInvalidArgument, where + " does not go up from 0"};
    }
    ranks->push_back(bounds);
    return {};
  });
}

}  // namespace lockstep::control
