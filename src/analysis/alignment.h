#pragma once

#include "analysis/collectives.h"
#include "model/run.h"

namespace lockstep::analysis {

/// Estimates every rank's clock against the lowest rank's from the ends of matched synchronising collectives
/// (all_reduce, all_gather, reduce_scatter, all_to_all, barrier): offset, drift where the window is long enough,
/// uncertainty. Ranks of one host share one clock when their estimates agree within the uncertainty. Ranks that share
/// no collective with the reference, directly or through others, keep the wall clock and say so in the ledger. A window
/// whose ranks all come aligned (RankTrace::clock_is_aligned) is left as it is. Source: docs/metrics.md#clock.
void AlignClocks(const Collectives& collectives, model::Run* run);

}  // namespace lockstep::analysis
