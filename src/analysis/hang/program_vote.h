#pragma once

#include <cstdint>
#include <vector>

#include "analysis/hang/job_view.h"

namespace lockstep::hang {

/// A call in the order in which its rank made them, of whatever group.
struct Step {
  uint32_t entry = 0;
  uint32_t group = 0;
  uint32_t siblings = 0;
  int64_t sequence = 0;
  uint32_t signature = 0;
  uint32_t site = 0;
  bool Same(const Step& other) const {
    return siblings == other.siblings && sequence == other.sequence && signature == other.signature;
  }
};

/// A rank's newest calls, oldest first; at most `newest`.
std::vector<Step> StepsOf(const JobView& view, int32_t rank, size_t newest);

enum class Divergence : uint8_t { kSkips, kAdds, kReorders };

/// Where a rank departs from the ranks that do the same work: after the same call, the others make one call and the
/// rank makes another.
struct ProgramFork {
  int32_t rank = 0;
  Step before;                  ///< Both made it.
  Step own;                     ///< What it made next.
  Step common;                  ///< What the others made next.
  std::vector<int32_t> others;  ///< Those ranks. Ascending.
  bool by_history = false;  ///< Both sides have as many ranks, and only the call of `others` is that of earlier rounds.
  Divergence kind = Divergence::kSkips;
};

/// The first fork of each rank that has one. Ranks count as doing the same work where their calls before agreed.
/// Cost: O(ranks x newest calls looked at).
std::vector<ProgramFork> VoteOnProgram(const JobView& view);

}  // namespace lockstep::hang
