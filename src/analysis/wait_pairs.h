#pragma once

#include <cstdint>
#include <vector>

#include "analysis/collectives.h"

namespace lockstep::analysis {

/// Waiting of one rank for another.
struct WaitPair {
  size_t victim_rank_index = 0;   ///< Who waited.
  size_t culprit_rank_index = 0;  ///< The rank that was last.
  /// Union of [own arrival, last arrival) over the complete synchronising collectives in which the culprit was last
  /// (beyond the clocks' uncertainty): what two collectives in flight at once share counts once. Added up over the
  /// victims it is the culprit's StragglerRow::wait_given_ns. Source: docs/metrics.md#wait-pairs.
  int64_t wait_ns = 0;
  uint64_t count = 0;  ///< Those collectives.
};

/// Pairs with waiting above 0, by (culprit, victim). Cost: O(members log members).
std::vector<WaitPair> ComputeWaitPairs(const Collectives& collectives);

}  // namespace lockstep::analysis
