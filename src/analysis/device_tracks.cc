#include "analysis/device_tracks.h"

namespace lockstep::analysis {

std::vector<DeviceTracks> FindDeviceTracks(const model::RankTrace& trace) {
  std::vector<DeviceTracks> devices;
  for (size_t i = 0; i < trace.tracks.size(); ++i) {
    const model::Track& track = trace.tracks[i];
    if (track.lane != model::Lane::kDevice || track.events.empty()) continue;
    // Tracks are sorted by (lane, process_id), so a device's streams are neighbours.
    if (devices.empty() || devices.back().device != track.device()) devices.push_back({track.device(), {}});
    devices.back().tracks.push_back(i);
  }
  return devices;
}

std::vector<DeviceCursor> MakeCursors(const RankContext& context, const DeviceTracks& device) {
  std::vector<DeviceCursor> cursors;
  cursors.reserve(device.tracks.size());
  for (const size_t track : device.tracks) cursors.emplace_back(context, track);
  return cursors;
}

}  // namespace lockstep::analysis
