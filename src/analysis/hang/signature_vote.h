#pragma once

#include <vector>

#include "analysis/hang/job_view.h"
#include "analysis/hang/mismatch.h"

namespace lockstep::hang {

/// The first mismatch of each group that was not followed by calls which matched and completed. By time.
/// Cost: O(calls).
std::vector<Mismatch> VoteOnSignatures(const JobView& view);

}  // namespace lockstep::hang
