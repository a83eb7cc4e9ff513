#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/environment.h"

namespace lockstep::launch {

/// Whose variables a rank was read from.
enum class Launcher : uint8_t {
  kAlone,
  kTorchrun,
  kOpenMpi,
  kMvapich,
  kPals,
  kHydra,
  kPmix,
  kFlux,
  kJsrun,
  kSlurm,
  kJax,
  kEnvironment
};
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

/// Finds rank, sizes and node by the variables of the innermost launcher (docs/capture.md#ranks): in a SLURM job,
/// `mpirun` and `torchrun` leave SLURM_PROCID of the launcher in every rank, and a batch script has SLURM_PROCID=0
/// without being one. RANK and WORLD_SIZE count first where torchrun set them (LOCAL_RANK or TORCHELASTIC_RUN_ID beside
/// them), unless they are leftovers (WORLD_SIZE=1, or a rank outside of it, while another launcher knows more ranks);
/// without those two they count last, as Kubernetes' operators set them.
RankIdentity FindRank(const Environment& environment);

}  // namespace lockstep::launch
