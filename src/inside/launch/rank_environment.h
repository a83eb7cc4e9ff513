#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/launchers/launchers.h"
#include "inside/launch/environment.h"

namespace lockstep::launch {

using launchers::Launcher;                    ///< Whose variables a rank was read from.
const char* LauncherName(Launcher launcher);  ///< "torchrun", "Open MPI"; "no launcher" for kAlone.
/// Whether its ranks are MPI's, or may be.
bool StartsMpiRanks(Launcher launcher);

/// Which rank this process is. What no variable says is nullopt, but see `derived`.
struct RankIdentity {
  Launcher launcher = Launcher::kAlone;
  std::optional<int32_t> rank = {};
  std::optional<int32_t> world_size = {};
  std::optional<int32_t> local_rank = {};
  std::optional<int32_t> local_size = {};
  std::optional<int32_t> node = {};
  /// How often torchrun has started this rank before: its earlier files have the same rank.
  int32_t restart = 0;
  std::string rank_variable = {};       ///< The one that said it.
  std::vector<std::string> notes = {};  ///< What was passed over, and why; a sentence each.
};

/// As launchers::FindRank has it for what starts the program (kBeforeProgram), and what is to be said of it.
RankIdentity FindRank(const Environment& environment);

}  // namespace lockstep::launch
