#include "analysis/hang/device_lag.h"

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

DeviceLag LagAt(uint32_t group, const Track& track, const Call& open) {
  DeviceLag lag;
  lag.rank = track.rank;
  lag.group = group;
  lag.track = &track;
  lag.sequence = open.sequence;
  lag.entry = open.entry;
  return lag;
}

/// Up to where a track's collectives began on the device, likewise. Where the recorder does not time them none seems
/// to.
int64_t BegunUpto(const JobView& view, const Track& track, bool status_counts) {
  int64_t begun = CompletedUpto(track, status_counts);
  if (status_counts) begun = std::max(begun, track.last_started.value_or(0));
  for (auto call = track.calls.rbegin(); call != track.calls.rend() && call->sequence > begun; ++call) {
    if (view.EntryOf(track, call->entry).state >= evidence::EntryState::kStarted) return call->sequence;
  }
  return begun;
}

/// The rank's oldest operation that is open on its device, in any group: what comes behind it cannot have begun.
uint32_t OldestOpen(const JobView& view, const RankView& rank) {
  uint32_t oldest = kNone;
  for (const uint32_t g : rank.groups) {
    const Track* track = view.groups[g].TrackOf(rank.rank);
    for (const Call& call : track->calls) {
      if (!call.done) oldest = std::min(oldest, call.entry);
    }
    for (const P2pCall& call : track->p2p) {
      if (!call.done) oldest = std::min(oldest, call.entry);
    }
  }
  return oldest;
}

/// The members that have not begun what most have (of two, what the other has), where it is the first that is open on
/// them.
std::vector<DeviceLag> NotBegun(const JobView& view, uint32_t g, bool status_counts) {
  const GroupView& group = view.groups[g];
  std::vector<int64_t> begun;
  for (const Track& track : group.tracks) begun.push_back(BegunUpto(view, track, status_counts));
  std::vector<DeviceLag> lags;
  for (size_t i = 0; i < group.tracks.size(); ++i) {
    const Track& track = group.tracks[i];
    const auto open = std::find_if(track.calls.begin(), track.calls.end(), [](const Call& call) { return !call.done; });
    if (open == track.calls.end() || begun[i] >= open->sequence) continue;
    const auto ahead = std::count_if(begun.begin(), begun.end(), [&](int64_t of) { return of >= open->sequence; });
    if (static_cast<size_t>(ahead) * 2 <= begun.size() && begun.size() > 2) continue;
    if (ahead == 0) continue;
    if (OldestOpen(view, view.ranks[track.rank_index]) != open->entry) continue;
    DeviceLag lag = LagAt(g, track, *open);
    lag.ahead_rank =
        group.tracks[static_cast<size_t>(std::max_element(begun.begin(), begun.end()) - begun.begin())].rank;
    lags.push_back(lag);
  }
  return lags;
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
    for (const DeviceLag& lag : NotBegun(view, g, !has_p2p)) {
      if (lag.sequence > furthest) lags.emplace(lag.rank, lag);
    }
    for (const Track& track : group.tracks) {
      const auto open =
          std::find_if(track.calls.begin(), track.calls.end(), [](const Call& call) { return !call.done; });
      if (open == track.calls.end() || open->sequence > furthest) {
        continue;
      }
      DeviceLag lag = LagAt(g, track, *open);
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
