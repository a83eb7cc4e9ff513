#pragma once

#include <vector>

#include "analysis/rank_context.h"
#include "model/step.h"

namespace lockstep::analysis {

/// The stretches of time that per-step rows count, in order, disjoint. A CPU's step ends before the device has done
/// what the step launched, so a window is stretched to the end of the last device event whose launch call lies inside
/// the step, and the next window starts there at the earliest (the rule of PyTorch's TensorBoard plugin). The first
/// window also starts after device events that no step launched and that end before the first step's first device
/// event. Without device events the windows are the CPU's steps, cut where they overlap. With drop_last_step the last
/// is left out. Source: docs/metrics.md#step-windows. Cost: O(device events).
std::vector<model::Step> StepWindows(const RankContext& context);

}  // namespace lockstep::analysis
