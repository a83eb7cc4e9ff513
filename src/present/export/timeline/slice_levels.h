#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "model/event.h"

namespace lockstep::timeline {

/// More crossing events than this at one moment are damage: what does not fit even then is cut.
inline constexpr uint32_t kMaxLevels = 256;

/// Where the events of a track go so that they nest.
struct NestingLevels {
  std::vector<uint32_t> level_of_row = {};    ///< Empty when all nest on level 0.
  std::map<size_t, int64_t> cut_end_ns = {};  ///< Events of the last level that had to end sooner. Normally empty.
  uint32_t level_count = 1;
  uint64_t moved_count = 0;  ///< Events above level 0.

  uint32_t level(size_t row) const { return level_of_row.empty() ? 0 : level_of_row[row]; }
};

/// A track of a timeline is a stack: its slices must nest. Kernels of one stream may overlap by the device's own doing,
/// and ranges of a thread may cross. Gives every event a level so that the events of one level nest: each goes to the
/// lowest level where it fits. Nothing is shifted, and nothing is cut below kMaxLevels.
/// In: events of a track, sorted as EventColumns are. Cost: O(events x levels).
NestingLevels FindNestingLevels(const model::EventColumns& events);

}  // namespace lockstep::timeline
