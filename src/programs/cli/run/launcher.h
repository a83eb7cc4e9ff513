#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

/// This process's rank as the innermost launcher says it (docs/capture.md#ranks); nullopt: none does.
std::optional<int32_t> RankFromEnvironment();

/// Whether `command` starts its processes on other machines, by its program's name and what the environment says of the
/// allocation: srun, mpiexec, ... A job on one node is not.
bool StartsOnOtherNodes(const std::vector<std::string>& command);

/// Whether `command` starts the ranks of a job on this node: torchrun, accelerate, mpirun, ...
bool StartsRanksHere(const std::vector<std::string>& command);

}  // namespace lockstep::cli
