#pragma once

#include <cstddef>
#include <vector>

#include "analysis/collectives.h"
#include "analysis/track_merge.h"
#include "model/run.h"

namespace lockstep::analysis {

/// The stretch of one member before one late arrival, on its own trace clock. Empty stretches have start == end.
struct LateWindow {
  Interval host;    ///< Up to the call that issued the collective.
  Interval device;  ///< Up to the arrival.
};

/// Stretches of one late arrival, parallel to LateWindows::ranks; absent members have none.
struct LateArrival {
  size_t instance = 0;
  std::vector<uint8_t> present;
  std::vector<LateWindow> windows;
};

struct LateWindows {
  std::vector<size_t> ranks;          ///< Rank indices; the late rank first.
  std::vector<LateArrival> arrivals;  ///< By arrival of the late rank. A rank's windows do not overlap.
};

/// For the late rank and at most `max_others` other members, the stretch from the late rank's previous collective (its
/// end, or its arrival where it was in flight) to each of the `late` instances; for other members the same point of the
/// same collective. Before the first collective: from when all of them were recording.
LateWindows FindLateWindows(const model::Run& run, const Collectives& collectives, size_t rank_index,
                            std::vector<size_t> late, size_t max_others);

}  // namespace lockstep::analysis
