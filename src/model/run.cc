#include "model/run.h"

#include <algorithm>
#include <set>
#include <utility>

namespace lockstep::model {

const char* ClockBasisName(ClockMap::Basis basis) {
  switch (basis) {
    case ClockMap::Basis::kReference: return "reference";
    case ClockMap::Basis::kCollectives: return "collectives";
    case ClockMap::Basis::kWallClock: return "wall_clock";
  }
  return "wall_clock";
}

const char* RankSourceName(RankSource source) {
  switch (source) {
    case RankSource::kDistributedInfo: return "distributed_info";
    case RankSource::kFileName: return "file_name";
    case RankSource::kOrder: return "order";
  }
  return "order";
}

void RankTrace::SwapEvents(RankTrace* other) {
  std::swap(tracks, other->tracks);
  std::swap(collectives, other->collectives);
  std::swap(synchronisations, other->synchronisations);
  std::swap(memory, other->memory);
  std::swap(shapes, other->shapes);
  std::swap(counters, other->counters);
  std::swap(linked_spans, other->linked_spans);
  std::swap(requests, other->requests);
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
