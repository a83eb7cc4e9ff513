#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/collectives.h"
#include "analysis/rank_context.h"
#include "analysis/track_merge.h"
#include "model/run.h"
#include "model/step.h"

namespace lockstep::analysis {

/// What planning must know of a rank besides its collectives: first round (analysis/rank_steps.h).
struct WaitRankFacts {
  std::vector<model::Step> steps;  ///< By start.
};

/// One rank's part in a collective that has a wait, in the order of the rank's program.
struct SequencePlace {
  uint32_t instance = 0;   ///< Index into Collectives::instances.
  uint32_t member = 0;     ///< Index into its members.
  int64_t step = -1;       ///< Step number; -1 = outside of steps.
  uint32_t in_step = 0;    ///< Index among the rank's places of the step.
  uint64_t signature = 0;  ///< Of the places of the step up to this one: what, how large, how many members.
  std::optional<uint32_t> previous_in_group = {};  ///< Index of the rank's place before it in the same group.
};

/// A stretch of a rank's time that is to be measured.
struct WaitStretch {
  std::optional<uint32_t> from = {};  ///< Index of the place at whose end it begins; absent: where all are recorded.
  uint32_t to = 0;                    ///< Index of the place at whose arrival it ends.
  friend auto operator<=>(const WaitStretch&, const WaitStretch&) = default;
};

/// The same stretch of a peer.
struct PeerStretch {
  uint32_t rank_index = 0;
  uint32_t stretch = 0;       ///< Index into WaitPlan::stretches of that rank.
  uint32_t step_stretch = 0;  ///< As LateNode::step_stretch.
};

/// A rank late in a run of collectives of one group and step. Lateness carries over from one to the next where the
/// others do not block, so the causes lie before the first, and the run is looked at as one.
struct LateNode {
  uint32_t rank_index = 0;
  uint32_t first = 0;  ///< Places of the rank, the first and the last of the run.
  uint32_t last = 0;
  int64_t step = -1;
  int64_t lateness_ns = 0;  ///< Largest, against the median of the other members; of messages, against the peers.
  int64_t total_ns = 0;     ///< Added up over the run.
  bool by_history = false;  ///< The peers are the rank itself in other steps.
  uint32_t stretch = 0;     ///< Its own, index into WaitPlan::stretches of the rank.
  /// The same end, from the end of the previous step. A rank that waits for a late rank may do other work meanwhile,
  /// and so has less of it left in the stretch; over this longer stretch that evens out. May be `stretch` itself.
  uint32_t step_stretch = 0;
  std::vector<PeerStretch> peers;  ///< Empty: nothing to compare with, no rank to blame.
};

/// What is to be measured on which rank, and why. The same from the same input.
struct WaitPlan {
  std::vector<int64_t> record_start_ns;  ///< By rank, its own clock: all ranks of its window are recorded from here.
  std::vector<std::vector<SequencePlace>> places;   ///< By rank.
  std::vector<std::vector<WaitStretch>> stretches;  ///< By rank, sorted, each once.
  /// By rank, its own clock: in collectives with missing members, so that it is not known which rank it waited for.
  std::vector<std::vector<Interval>> unexplained;
  /// By instance and member: arrival on a clock that they share. The aligned clock if it is known; else, for
  /// synchronising collectives, a clock that reads 0 at their common end, because durations need no clock. Empty:
  /// waiting is not known (incomplete, impossible, neither synchronising nor a message, or a message between unknown
  /// clocks).
  std::vector<std::vector<int64_t>> arrival_ns;
  std::vector<int64_t> last_arrival_ns;                ///< By instance: the largest of these; 0 where there are none.
  std::vector<LateNode> nodes;                         ///< By (arrival of the first place, rank).
  std::vector<std::vector<int32_t>> node_of_member;    ///< By instance and member; -1 = not late.
  std::vector<std::vector<uint32_t>> place_of_member;  ///< By instance and member; UINT32_MAX = none.
  int64_t step_ns = 0;         ///< Median length of a step; where there are none the length of the job.
  std::vector<int64_t> steps;  ///< Numbers of the steps that hold collectives, ascending.

  /// A member's waiting for the last to arrive; for messages at most the duration of its own part; 0 if it is not
  /// known.
  int64_t WaitOf(const Collectives& collectives, uint32_t instance, uint32_t member) const;
  bool HasWait(uint32_t instance) const { return !arrival_ns[instance].empty(); }
  int64_t FloorNs() const;  ///< Below it no delay of a step is told.
};

/// A send and its receive.
bool IsMessage(const CollectiveInstance& instance);

/// First round, reduce.
WaitPlan PlanWaitStates(const model::Run& run, const Collectives& collectives, const std::vector<WaitRankFacts>& facts);

}  // namespace lockstep::analysis
