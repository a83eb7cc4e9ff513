#include "model/run.h"

#include <algorithm>
#include <set>

namespace lockstep::model {

const char* RankSourceName(RankSource source) {
  switch (source) {
    case RankSource::kDistributedInfo: return "distributed_info";
    case RankSource::kFileName: return "file_name";
    case RankSource::kOrder: return "order";
  }
  return "order";
}

bool RankTrace::HasDeviceEvents() const {
  if (elsewhere) return !elsewhere->device_ordinals.empty();
  return std::any_of(tracks.begin(), tracks.end(),
                     [](const Track& track) { return track.lane == Lane::kDevice && !track.events.empty(); });
}

std::vector<DeviceOrdinal> RankTrace::DeviceOrdinals() const {
  if (elsewhere) return elsewhere->device_ordinals;
  std::set<DeviceOrdinal> ordinals;
  for (const Track& track : tracks) {
    if (track.lane == Lane::kDevice && !track.events.empty()) ordinals.insert(track.device());
  }
  return {ordinals.begin(), ordinals.end()};
}

}  // namespace lockstep::model
