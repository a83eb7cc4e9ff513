#pragma once

#include <vector>

#include "analysis/frontier/accounting.h"
#include "analysis/frontier/rounds.h"

namespace lockstep::frontier {

/// All steps of a job in one part.
inline Accounting Account(const std::vector<model::RankStages>& ranks) {
  const Rounds rounds = CutRounds(ranks);
  return Whole(rounds, ranks, AccountParts(rounds, ranks, 1));
}

}  // namespace lockstep::frontier
