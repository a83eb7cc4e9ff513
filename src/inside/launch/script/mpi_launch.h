#pragma once

#include <string>

#include "inside/launch/script/script_parts.h"

namespace lockstep::launch {

/// mpiexec or mpirun of the job's MPI, up to the command: `per_node` ranks on each node of the hosts in `hostfile` (the
/// shell's word for it).
std::string MpiLauncher(const JobRequest& request, int64_t per_node, const std::string& hostfile);

/// Whose variables it sets in each rank.
Launcher MpiStarter(MpiFlavour flavour);

/// Sets MASTER_ADDR to the first host of the file, and the lines that start the job behind it.
std::string MpiStart(const JobRequest& request, const std::string& hostfile, const std::string& id);

}  // namespace lockstep::launch
