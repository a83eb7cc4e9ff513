#include "analysis/hang/group_status.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>

namespace lockstep::hang {
namespace {

using evidence::FlightGroup;
using evidence::FlightRecord;
using evidence::kNotRecorded;

std::optional<int64_t> NumberOf(std::string_view text) {
  int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size() || text.empty()) {
    return std::nullopt;
  }
  return value;
}

std::optional<int64_t> Known(int64_t value) {
  return value == kNotRecorded ? std::nullopt : std::optional<int64_t>(std::max<int64_t>(value, 0));
}

/// What a track says of sequence numbers that it does not hold.
void FindIssued(const RankView& rank, bool truncated, bool status_is_of_collectives, Track& track) {
  const bool trust_status = track.on_device && status_is_of_collectives && track.last_enqueued.has_value();
  track.issued_upto = track.calls.empty() ? 0 : track.calls.back().sequence;
  if (trust_status) {
    track.issued_upto = std::max(track.issued_upto, *track.last_enqueued);
    track.issued_exact = true;
    return;
  }
  if (truncated) {
    return;  // The newest entries are those that are lost.
  }
  // The ring overwrites the oldest: whatever is there, nothing newer was issued.
  track.issued_exact = !track.calls.empty() || !rank.ring_wrapped;
}

void SetDone(Track& track, bool status_is_of_collectives) {
  if (!track.on_device || !status_is_of_collectives || !track.last_completed) {
    return;
  }
  for (Call& call : track.calls) {
    call.done = call.done || call.sequence <= *track.last_completed;
  }
}

}  // namespace

std::vector<GroupStatus> LinkStatus(const FlightRecord& record) {
  std::vector<GroupStatus> status(record.groups.size());
  std::map<int64_t, GroupStatus> by_local_id;
  std::map<int64_t, size_t> by_name;
  bool names_are_numbers = true;
  for (size_t i = 0; i < record.groups.size(); ++i) {
    const FlightGroup& group = record.groups[i];
    status[i] = {group.last_enqueued, group.last_started, group.last_completed};
    if (group.local_id != kNotRecorded) {
      by_local_id[group.local_id] = status[i];
    }
    if (!group.name.empty()) {
      const std::optional<int64_t> number = NumberOf(group.name);
      names_are_numbers = names_are_numbers && number && by_name.emplace(*number, i).second;
    }
  }
  if (!names_are_numbers || by_local_id.size() != by_name.size()) {
    return status;
  }
  auto name = by_name.begin();
  for (const auto& [local_id, values] : by_local_id) {
    const int64_t known = record.groups[name->second].local_id;
    if (known != kNotRecorded && known != local_id) {
      return status;
    }
    ++name;
  }
  name = by_name.begin();
  for (const auto& [local_id, values] : by_local_id) {
    status[name->second] = values;
    ++name;
  }
  return status;
}

void SetStatus(const GroupStatus& status, Track& track) {
  track.last_enqueued = Known(status.enqueued);
  track.last_started = status.started < 0 ? std::nullopt : Known(status.started);
  track.last_completed = Known(status.completed);
}

void SetProgress(const RankView& rank, bool status_is_of_collectives, Track& track) {
  SetDone(track, status_is_of_collectives);
  FindIssued(rank, rank.evidence->record->truncated, status_is_of_collectives, track);
}

}  // namespace lockstep::hang
