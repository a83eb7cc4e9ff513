#pragma once

#include <cstdint>
#include <vector>

#include "analysis/collectives.h"
#include "analysis/wait_states/wait_plan.h"

namespace lockstep::analysis {

/// By instance, how much longer its transfer took than the median of its like (same operation, size and number of
/// members, in any group and step); 0 unless that is beyond half of the median and beyond what its like differ by.
/// Fewer than four alike tell nothing. Cost: O(instances log instances).
std::vector<int64_t> SlowTransfers(const Collectives& collectives, const WaitPlan& plan);

}  // namespace lockstep::analysis
