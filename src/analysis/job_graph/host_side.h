#pragma once

#include <vector>

#include "analysis/job_graph/device_side.h"

namespace lockstep::analysis {

/// Adds the host threads to the step graphs: what leads to the anchors and, on the main thread, to the ends of the
/// steps; hand-overs between threads; collectives of CPU backends and the waits for them.
void AddHostSide(const RankContext& context, std::vector<HostAnchor> anchors, std::vector<RankStepGraph>* steps);

}  // namespace lockstep::analysis
