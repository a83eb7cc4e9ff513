#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "analysis/host_role.h"
#include "analysis/track_merge.h"
#include "base/ids.h"
#include "model/event.h"

namespace lockstep::analysis {

/// A piece of a window in which one range is the innermost of a thread.
struct HostPiece {
  size_t window = 0;            ///< Index into the windows.
  NameId name;                  ///< Of the innermost range; empty = nothing is recorded there.
  bool in_data_loader = false;  ///< A data loader range is the innermost one or around it.
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

/// Cuts windows of one CPU thread into pieces by innermost range and reports each. Ranges of CPU backends' collectives
/// do not nest and are left out; a range that outlives the one around it is cut at its end. In: windows sorted and
/// disjoint. Cost: O(events up to the end of the last window).
void VisitHostTime(const model::EventColumns& events, HostRoles& roles, const std::vector<Interval>& windows,
                   const std::function<void(const HostPiece&)>& visit);

}  // namespace lockstep::analysis
