#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/launchers/launchers.h"
#include "node/control/api/process.h"

namespace lockstep::proc {

/// What /proc tells of a process, beyond what its messages say. Unknown is empty or nullopt.
struct ProcessDetails {
  uint64_t start_ticks = 0;             ///< 0: /proc does not show it.
  std::vector<int32_t> ancestors = {};  ///< Parent first, as the daemon sees them; at most 32, without pid 1.
  std::string user = {};
  std::string command = {};                                       ///< One line, secrets replaced; at most 1 KiB.
  launchers::Launcher rank_source = launchers::Launcher::kAlone;  ///< Whose variables the rank was read from.
  std::optional<int32_t> rank = {};
  std::optional<int32_t> local_rank = {};
  std::optional<int32_t> world_size = {};
  control::JobKind job_kind = control::JobKind::kNone;
  std::string job_id = {};
  std::string job_step = {};
  std::string device = {};                 ///< "cuda", "rocm", "xpu", "cpu".
  std::string torch_version = {};          ///< "2.13.0+cpu".
  std::string python_version = {};         ///< "3.11", by the interpreter's name.
  std::vector<std::string> settings = {};  ///< "NAME=VALUE", sorted; see ReadSettings().
  bool counts_iterations = true;
  bool has_step_tracer = false;   ///< Was started under `lockstep run`, which gave it lockstep's own tracer.
  std::string trace_folder = {};  ///< KINETO_ONDEMAND_TRACE_DIR: from PyTorch 2.14 on, traces go nowhere else.
  bool launcher = false;          ///< By its command: torchrun and its like, which import torch and train nothing.
  bool helper = false;            ///< A worker by its own name: a DataLoader's, or a compiler's.
};

/// A process among the others of its node, to tell what it is.
struct RoleInput {
  int32_t pid = 0;
  const ProcessDetails* details = nullptr;                     ///< Null: nothing is known of it.
  control::ProcessRole role = control::ProcessRole::kTrainer;  ///< Out.
};

/// Sets the roles. A helper is one by its name, or has a registered ancestor's rank from the same launcher. A launcher
/// is one by its command (its ranks may not have registered yet), or an ancestor of one that is not a helper, and has
/// no rank, or one that an outer launcher gave it (torchrun under srun has SLURM's). All others are trainers. Cost: O(n
/// x depth).
void AssignRoles(std::vector<RoleInput>* processes);

}  // namespace lockstep::proc
