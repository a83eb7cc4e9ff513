#pragma once

#include <cstdint>
#include <vector>

#include "model/stages/stage.h"

namespace lockstep::model {

/// Whom a wait for a collective waits for.
struct WaitedFor {
  uint16_t group = 0;        ///< 0: all ranks of the job, else RankStages::groups[group - 1].
  bool is_pairwise = false;  ///< One peer of them (send, receive): the group's ranks do not meet there.
};

/// Part of a step in one stage. Neighbours differ in their stage, except where one wait for a collective follows
/// another at once: each is an instant at which the group's ranks meet.
struct StageSpan {
  constexpr StageSpan(Stage of, int64_t ns, WaitedFor whom = {}) : stage(of), waited_for(whom), duration_ns(ns) {}

  Stage stage;
  WaitedFor waited_for;  ///< Of kCommunication alone.
  int64_t duration_ns;
};

/// One step of one rank.
struct StepStages {
  int64_t number = 0;
  int64_t start_ns = 0;               ///< The rank's wall clock.
  int64_t duration_ns = 0;            ///< What `spans` add up to.
  std::vector<StageSpan> spans = {};  ///< In order of time, without gaps.
};

}  // namespace lockstep::model
