#pragma once

#include <cstddef>
#include <vector>

#include "analysis/collectives.h"
#include "analysis/track_merge.h"
#include "model/run.h"

namespace lockstep::analysis {

/// A run of collectives of one step in which the rank was last every time. Lateness carries over from one to the next
/// where the others do not block, so the causes lie before the first, and the whole run is looked at as one.
struct LateSpell {
  size_t first_instance = 0;  ///< Indices into Collectives::instances.
  size_t last_instance = 0;
};

/// The stretch of one member before the end of one late spell, on its own trace clock. Empty stretches have start ==
/// end.
struct LateWindow {
  Interval host;    ///< Up to the call that issued the collective.
  Interval device;  ///< Up to the arrival.
};

/// Stretches of one late spell, parallel to LateWindows::ranks; absent members have none.
struct LateArrival {
  size_t instance = 0;  ///< The last of the spell.
  std::vector<uint8_t> present;
  std::vector<LateWindow> windows;
};

struct LateWindows {
  std::vector<size_t> ranks;          ///< Rank indices; the late rank first.
  std::vector<LateArrival> arrivals;  ///< By arrival of the late rank. A rank's windows do not overlap.
};

/// For the late rank and at most `max_others` other members, the stretch from the late rank's collective before the
/// spell (its end, or its arrival where it was in flight) to the last collective of the spell; for other members the
/// same point of the same collectives. Before the first collective: from when all of them were recording.
LateWindows FindLateWindows(const model::Run& run, const Collectives& collectives, size_t rank_index,
                            std::vector<LateSpell> spells, size_t max_others);

}  // namespace lockstep::analysis
