#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::ingest::nsight {

/// What the variables of a launcher say of a process.
struct LaunchFacts {
  std::optional<int32_t> rank = {};
  std::optional<int32_t> world_size = {};
  std::string variable = {};  ///< That said so: "RANK", "SLURM_PROCID".
};

/// Of processes (globalPid) whose own environment a report holds.
using ProcessLaunches = std::map<int64_t, LaunchFacts>;

/// Value of a variable, by name; absent when it is not set.
using Environment = std::function<std::optional<std::string>(std::string_view name)>;

/// Which rank the process is: torchrun's RANK and WORLD_SIZE where they agree, then Open MPI, PMI and PALS, SLURM,
/// MVAPICH2, Flux, LSF, JAX. A world of one is believed only when nothing names a larger one, and never of SLURM, whose
/// interactive allocations set it for every process. Only these names are ever asked for.
LaunchFacts ReadLaunch(const Environment& environment);

/// "KEY=VAL;KEY=VAL" (or one a line) as TARGET_INFO_SYSTEM_ENV has it. Values may hold ';', so only names that are
/// asked for are looked for, at the beginning or behind one.
std::optional<std::string> FindVariable(std::string_view joined, std::string_view name);

}  // namespace lockstep::ingest::nsight
