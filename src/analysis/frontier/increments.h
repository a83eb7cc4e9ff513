#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "model/stages/stage.h"

namespace lockstep::frontier {

/// The order in which a round's stages count, from the end of one meeting of the ranks to the end of the next: what
/// follows the meeting first, the wait for the meeting last.
inline constexpr std::array kOrder = {
    model::Stage::kOptimizer,         model::Stage::kCheckpoint,   model::Stage::kValidation,   model::Stage::kOther,
    model::Stage::kGarbageCollection, model::Stage::kInput,        model::Stage::kHostToDevice, model::Stage::kForward,
    model::Stage::kBackward,          model::Stage::kCommunication};
static_assert(kOrder.size() == model::kStages.size());

/// What one stage adds to the frontier.
struct Increment {
  int64_t ns = 0;         ///< Never negative.
  size_t leader_idx = 0;  ///< Of the rank that is at the frontier behind the stage: of several the first.
};

/// Exact and additive accounting of one round: with C[r][k] the time of rank r up to stage k in kOrder, the frontier is
/// F[k] = max over r of C[r][k], and the increments F[k] - F[k-1] add up to the longest rank's time. By model::Stage.
/// `ranks`: one at least, no time negative. Source: StageFrontier, arXiv 2606.06751, section 3.
std::array<Increment, kOrder.size()> Increments(std::span<const model::StageTimes> ranks);

}  // namespace lockstep::frontier
