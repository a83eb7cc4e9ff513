#pragma once

#include <vector>

#include "model/evidence/nccl_state.h"

namespace lockstep::ingest {

/// What answers of RAS say is wrong, in its words, and what two answers of one job, one after the other, say together:
/// a communicator whose ranks have launched different numbers of operations and where no number has changed stands
/// still; the ranks with fewer are late (kind "ras_stuck"; ranks are the communicator's). RAS's own "OK" is not a
/// finding and no proof. What several answers say alike is one finding. `reports` in the order of asking.
std::vector<evidence::NcclLogFinding> FindRasProblems(const std::vector<evidence::RasReport>& reports);

}  // namespace lockstep::ingest
