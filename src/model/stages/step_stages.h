#pragma once

#include <cstdint>
#include <vector>

#include "model/stages/stage.h"

namespace lockstep::model {

/// Part of a step in one stage. Neighbours differ in their stage, except where one wait for a collective follows
/// another at once: each is an instant at which the group's ranks meet.
struct StageSpan {
  Stage stage = Stage::kOther;
  int64_t duration_ns = 0;
};

/// One step of one rank.
struct StepStages {
  int64_t number = 0;
  int64_t start_ns = 0;               ///< The rank's wall clock.
  int64_t duration_ns = 0;            ///< What `spans` add up to.
  std::vector<StageSpan> spans = {};  ///< In order of time, without gaps.
};

}  // namespace lockstep::model
