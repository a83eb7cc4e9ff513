#pragma once

#include <cstdint>

#include "analysis/comparison/run_profile.h"
#include "analysis/profile_history/capture_record.h"

namespace lockstep::profile_history {

/// Fills figures, own_ns, findings, world_size and step_count of a record from what was captured: medians over the
/// capture's steps. `optimizer_step_count`: of a capture whose traces mark no steps, how many its window holds, by
/// PyTorch's optimizer; 0: unknown, and times are then shares of the window. Figures: docs/watch.md#figures.
void FillFigures(const comparison::RunProfile& profile, int64_t optimizer_step_count, CaptureRecord* record);

}  // namespace lockstep::profile_history
