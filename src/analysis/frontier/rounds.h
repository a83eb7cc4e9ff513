#pragma once

#include <cstdint>
#include <vector>

#include "model/stages/rank_stages.h"

namespace lockstep::frontier {

/// What ranks did between two instants at which they met.
struct Round {
  int64_t step = 0;                      ///< In which it ends.
  bool ends_in_meeting = false;          ///< All ranks ended a wait for a collective: who came last, cost the others.
  std::vector<model::StageTimes> ranks;  ///< In the order of the ranks.
};

/// What could be compared of a job.
struct Rounds {
  std::vector<Round> rounds;   ///< In order; they hold all of the time of `step_count` steps but the end of the last.
  int64_t step_count = 0;      ///< That every rank has.
  int64_t left_out_count = 0;  ///< That some rank lacks.
  int64_t tail_ns = 0;         ///< Of the longest rank, behind its last meeting: in no round.
};

/// Cuts the steps of a group whose ranks synchronise. A step that every rank waits in equally often is cut behind each
/// wait; where they differ, behind the last one; and where a rank never waits, the step is a round without a meeting.
/// What follows a step's last meeting belongs to the first round of the next step.
Rounds CutRounds(const std::vector<model::RankStages>& ranks);

}  // namespace lockstep::frontier
