#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/stages/rank_stages.h"

namespace lockstep::frontier {

/// What ranks did between two instants at which they met.
struct Round {
  int64_t step = 0;                      ///< In which it ends.
  bool ends_in_meeting = false;          ///< All ranks ended a wait for a collective: who came last, cost the others.
  std::vector<model::StageTimes> ranks;  ///< In the order of the ranks.
};

/// What could be compared of a job, or of a group of its ranks.
struct Rounds {
  std::vector<int32_t> ranks;  ///< Whose.
  std::vector<Round> rounds;   ///< In order; they hold all of the time of `step_count` steps but the end of the last.
  int64_t step_count = 0;      ///< That every rank has.
  int64_t left_out_count = 0;  ///< That some rank lacks.
  int64_t pairwise_count = 0;  ///< Steps whose end was taken for a meeting.
  int64_t tail_ns = 0;         ///< Of the longest rank, behind its last meeting: in no round.
};

/// Whether a step of this number is to be counted.
using StepFilter = std::function<bool(int64_t)>;

/// The steps that all ranks of a job have. `ranks` outlives it.
class SharedSteps {
 public:
  /// `counts`: null, or of which steps rounds are wanted. The others are cut all the same, for what follows a step's
  /// last meeting is the next one's.
  explicit SharedSteps(const std::vector<model::RankStages>& ranks, StepFilter counts = nullptr);

  /// Cuts the steps of ranks that synchronise in process group `group` (model::WaitedFor::group, the same number for
  /// all ranks of the job). `members`: indices into the job's ranks. A step that every one waits in equally often is
  /// cut behind each wait of this group; where they differ, behind the last one; where a rank never waits, the step is
  /// a round without a meeting. What follows a step's last meeting belongs to the first round of the next step. Where
  /// all members wait for each other, but only in pairs, as the stages of a pipeline do, none can be a step ahead: the
  /// step's end counts as a meeting.
  Rounds CutRounds(std::span<const size_t> members, uint16_t group) const;
  /// The same of all ranks.
  Rounds CutRounds() const;

 private:
  const std::vector<model::RankStages>& ranks_;
  StepFilter counts_;
  std::vector<std::vector<const model::StepStages*>> steps_;  ///< Each by rank.
  std::vector<bool> follows_gap_;                             ///< By step: others are missing before it.
  int64_t left_out_count_ = 0;
};

}  // namespace lockstep::frontier
