#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/hang/findings.h"

namespace lockstep::hang {

/// Whether a rank without an open operation may be in a communication that its recorder does not keep: a send or
/// receive of Gloo's, a monitored barrier, a group of another backend. Empty text: no sign of it.
std::string SignOfUnrecorded(const Findings& findings, int32_t rank);

/// The probable peers of an unrecorded send (or receive) of `rank`: the ranks at the same place in the neighbouring
/// stage, if recorded groups split the job into equal stages. Empty: not known.
std::vector<int32_t> LikelyPeers(const Findings& findings, int32_t rank, bool is_send);

/// Ranks that, before their newest call of a group, made fewer unrecorded operations in it than in every earlier round
/// between the same two calls. Gloo counts sends and receives without recording them: the count shows who left one out.
std::vector<int32_t> MadeFewerUnrecorded(const Findings& findings);

}  // namespace lockstep::hang
