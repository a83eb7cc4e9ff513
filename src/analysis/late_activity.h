#pragma once

#include <cstddef>
#include <vector>

#include "analysis/collectives.h"
#include "analysis/late_windows.h"
#include "analysis/rank_context.h"
#include "analysis/stragglers.h"

namespace lockstep::analysis {

/// What a rank did instead of arriving. Every late spell is looked at from the rank's collective before it (its end, or
/// its arrival where it was still in flight): on the device side to the last arrival of the spell, on the CPU side to
/// the call that issued that collective, so that CPU work does not count when the device was behind. The same stretch
/// of the other members is measured, and what exceeds their median is returned, largest first, at most 5. In: `spells`
/// of the rank, the costliest first; the first 64 are looked at, against at most 16 other members. Source:
/// docs/metrics.md#late-activities. Cost: O(operator events of the members looked at).
std::vector<LateActivity> FindLateActivities(const RunContext& shared, const Collectives& collectives,
                                             size_t rank_index, const std::vector<LateSpell>& spells);

}  // namespace lockstep::analysis
