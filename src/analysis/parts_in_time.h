#pragma once

#include <cstddef>
#include <vector>

#include "model/run.h"

namespace lockstep::analysis {

/// The traces of one window, [first, first + count) of the run, in parts that do not overlap in time on the aligned
/// clock, earliest first; indices into Run::ranks, within a part by their begin. Traces whose times cannot be compared
/// with the first one's are left out. Ranks that share a collective overlap, because alignment puts its end at one
/// time.
std::vector<std::vector<size_t>> PartsInTime(const model::Run& run, size_t first, size_t count);

/// Of traces in several parts that lie further apart than all of them are long: moves each part to shortly after the
/// one before it, so that a picture of all shows them, and says so in the ledger.
void CloseGaps(size_t first, size_t count, model::Run* run);

}  // namespace lockstep::analysis
