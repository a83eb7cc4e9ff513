#pragma once

#include <cstdint>

#include "analysis/hang/job_view.h"

namespace lockstep::hang {

/// Whether the sizes of a member's call at `sequence` contradict each other: all_gather's output is its input times the
/// members, reduce_scatter's the other way round. False where nothing is known of the call, of its sizes or for sure
/// of the group's members.
bool BreaksSizeRule(const JobView& view, const GroupView& group, int32_t rank, int64_t sequence);

}  // namespace lockstep::hang
