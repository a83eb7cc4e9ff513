#include "hang/device_lag.h"

#include <algorithm>
#include <map>

namespace lockstep::hang {
namespace {

/// Up to where a track's collectives completed: by its status, where that counts collectives, else by its entries.
int64_t CompletedUpto(const Track& track, bool status_counts) {
  int64_t completed = status_counts ? track.last_completed.value_or(0) : 0;
  for (auto call = track.calls.rbegin(); call != track.calls.rend(); ++call) {
    if (call->done) {
      return std::max(completed, call->sequence);
    }
  }
  return completed;
}

}  // namespace

std::vector<DeviceLag> FindDeviceLag(const JobView& view) {
  std::map<int32_t, DeviceLag> lags;
  for (uint32_t g = 0; g < view.groups.size(); ++g) {
    const GroupView& group = view.groups[g];
    bool has_p2p = false;
    bool on_device = !group.tracks.empty();
    for (const Track& track : group.tracks) {
      has_p2p = has_p2p || !track.p2p.empty();
      on_device = on_device && track.on_device;
    }
    if (!on_device) {
      continue;
    }
    int64_t furthest = 0;
    int32_t ahead = -1;
    for (const Track& track : group.tracks) {
      const int64_t completed = CompletedUpto(track, !has_p2p);
      if (completed > furthest) {
        furthest = completed;
        ahead = track.rank;
      }
    }
    for (const Track& track : group.tracks) {
      const auto open =
          std::find_if(track.calls.begin(), track.calls.end(), [](const Call& call) { return !call.done; });
      if (open == track.calls.end() || open->sequence > furthest) {
        continue;
      }
      DeviceLag lag;
      lag.rank = track.rank;
      lag.group = g;
      lag.track = &track;
      lag.sequence = open->sequence;
      lag.entry = open->entry;
      lag.behind = furthest - open->sequence + 1;
      lag.ahead_rank = ahead;
      const auto [place, is_new] = lags.emplace(track.rank, lag);
      if (!is_new && lag.entry < place->second.entry) {
        place->second = lag;  // The oldest that is open is where the device stands.
      }
    }
  }
  std::vector<DeviceLag> result;
  for (const auto& [rank, lag] : lags) {
    result.push_back(lag);
  }
  return result;
}

}  // namespace lockstep::hang
