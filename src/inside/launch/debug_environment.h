#pragma once

#include <string>
#include <utility>
#include <vector>

#include "inside/launch/environment.h"
#include "inside/launch/rank_environment.h"

namespace lockstep::launch {

/// Variables with which a job of PyTorch leaves in `folder` what a hang is explained by: NCCL's log (a file for each
/// rank, or for each process where the rank is not known yet), the flight recorder's dumps of a time-out, and PyTorch's
/// own checks and stacks. What the user has set stays as it is and is left out.
std::vector<std::pair<std::string, std::string>> DebugVariables(const std::string& folder,
                                                                const Environment& environment,
                                                                const RankIdentity& identity, const std::string& host);

}  // namespace lockstep::launch
