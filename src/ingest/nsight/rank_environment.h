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

/// Which rank the process is, as launchers::FindRank has it of a program (kInProgram). A rank that is not below its
/// world size and a SLURM step of one task are ignored. Only names of that table, and those that it needs, are read.
LaunchFacts ReadLaunch(const Environment& environment);

/// "KEY=VAL;KEY=VAL" (or one a line) as TARGET_INFO_SYSTEM_ENV has it. Values may hold ';', so only names that are
/// asked for are looked for, at the beginning or behind one.
std::optional<std::string> FindVariable(std::string_view joined, std::string_view name);

}  // namespace lockstep::ingest::nsight
