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

/// Ranks that, before their newest call of a group, made fewer unrecorded operations in it than in every earlier round
/// between the same two calls. Gloo counts sends and receives and does not record them: who left one out shows so.
std::vector<int32_t> MadeFewerUnrecorded(const Findings& findings);

}  // namespace lockstep::hang
