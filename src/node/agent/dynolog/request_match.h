#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "node/agent/capture/capture_manager.h"
#include "node/agent/dynolog/rpc_message.h"
#include "node/control/api/process.h"

namespace lockstep::agent {

/// Those of `processes` that a request means and `caller` may trace, in their order. As Dynolog does it: the job must
/// be the process's (0: it runs under no SLURM job), and a pid must be the process's own or an ancestor's, in the
/// process's view or the daemon's; no pids, or 0 alone: all. Other than Dynolog: launchers and helpers are left out.
std::vector<control::Process> MatchRequest(const RpcRequest& request, const std::vector<control::Process>& processes,
                                           const Caller& caller);

/// Whether `log_file` is a plain absolute path ("..", "//", "." and control characters are none) below one of
/// `folders`.
bool IsInFolders(std::string_view log_file, const std::vector<std::string>& folders);

}  // namespace lockstep::agent
