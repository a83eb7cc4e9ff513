#pragma once

#include <cstddef>
#include <vector>

#include "analysis/collectives.h"
#include "analysis/rank_context.h"
#include "analysis/stragglers.h"

namespace lockstep::analysis {

/// What a rank did instead of arriving. Every late arrival is looked at from the rank's previous collective (its end,
/// or its arrival where it was still in flight) to the arrival on the device side, and to the call that issued the
/// collective on the CPU side, so that CPU work does not count when the device was behind. The same stretch of the
/// other members is measured, and what exceeds their median is returned, largest first, at most 5. In: `late`, indices
/// of instances in which the rank was last, the costliest first; the first 64 are looked at, against at most 16 other
/// members each. Source: docs/metrics.md#late-activities. Cost: O(operator events of the members looked at).
std::vector<LateActivity> FindLateActivities(const RunContext& shared, const Collectives& collectives,
                                             size_t rank_index, const std::vector<size_t>& late);

}  // namespace lockstep::analysis
