#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/rank_context.h"
#include "analysis/track_merge.h"

namespace lockstep::analysis {

/// One run of the backward pass: once per step, or once per micro-batch. Trace clock.
struct BackwardPhase {
  Interval host;  ///< First start to last end of autograd's ranges on the CPU.
  /// First start to last end of the compute kernels launched in it; on jobs without a device, `host`. Absent when no
  /// such kernel is in the file.
  std::optional<Interval> device = {};
};

/// The backward passes of a rank in order of time: ranges whose name has "backward" in any case or that belong to
/// autograd's engine ("autograd::engine::evaluate_function: ...", "AddmmBackward0", "## backward ##"), joined until the
/// training thread works on something else. Empty when the trace has none (no CPU events, inference).
/// Source: docs/metrics.md#backward-phases. Cost: O(CPU operators + kernels).
std::vector<BackwardPhase> FindBackwardPhases(const RankContext& context);

/// The phase around an instant of the CPU; a call that follows the last range within the phase's thread by less than
/// `slack_ns` still belongs to it (hooks at the end of the pass run outside of ranges). SIZE_MAX = none.
size_t PhaseAround(const std::vector<BackwardPhase>& phases, int64_t host_ns, int64_t slack_ns);

}  // namespace lockstep::analysis
