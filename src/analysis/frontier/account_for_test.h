#pragma once

#include <vector>

#include "analysis/frontier/accounting.h"
#include "analysis/frontier/rounds.h"

namespace lockstep::frontier {

inline Rounds CutRoundsOf(const std::vector<model::RankStages>& ranks) { return SharedSteps(ranks).CutRounds(); }

/// All steps of a job in one part.
inline Accounting Account(const std::vector<model::RankStages>& ranks) {
  const Rounds rounds = CutRoundsOf(ranks);
  return Whole(rounds, AccountParts(rounds, 1));
}

}  // namespace lockstep::frontier
