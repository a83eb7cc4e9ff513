#pragma once

#include <cstdint>
#include <vector>

#include "analysis/collectives.h"
#include "analysis/wait_states/wait_plan.h"

namespace lockstep::analysis {

/// By instance, how much longer its transfer took than the median of comparable ones (same operation, size and number
/// of members, in any group and step); 0 unless that is more than half of the median and more than the comparable ones
/// differ by. At least four comparable ones are needed. Cost: O(instances log instances).
std::vector<int64_t> SlowTransfers(const Collectives& collectives, const WaitPlan& plan);

}  // namespace lockstep::analysis
