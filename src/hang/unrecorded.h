#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hang/findings.h"

namespace lockstep::hang {

/// Whether a rank that has nothing open may all the same be in a communication that its recorder does not keep: a
/// send or receive of Gloo's, a monitored barrier, a group of another backend. Empty text: no sign of it.
std::string SignOfUnrecorded(const Findings& findings, int32_t rank);

/// Ranks that a send (or receive) of `rank` in no recorded group probably goes to: those at the same place in the
/// neighbouring stage, where recorded groups split the job into equal stages. Empty: nothing tells.
std::vector<int32_t> LikelyPeers(const Findings& findings, int32_t rank, bool is_send);

}  // namespace lockstep::hang
