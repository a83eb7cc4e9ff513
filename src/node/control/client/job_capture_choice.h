#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "node/control/api/capture.h"
#include "node/control/api/process.h"
#include "node/control/client/job_capture.h"

namespace lockstep::control {

/// Whether all that the selector says holds for the process.
bool Matches(const CaptureSelector& selector, const Process& process);

/// What is registered on one node.
struct NodeProcesses {
  size_t node_idx = 0;
  std::string host;
  std::vector<Process> processes;
};

struct JobChoice {
  std::vector<JobTarget> targets;  ///< By rank, then node and pid.
  std::optional<int32_t> world_size;
  std::vector<int32_t> missing_ranks;  ///< Below world_size and selected, and registered on none of the nodes.
  uint64_t other_user_count = 0;
};

/// Chooses the processes to trace. `caller_uid`: of a caller who is not root; if processes of the caller match, those
/// of other users are left out. Several jobs are never mixed, unless pids or process ids name them. Errors: kNotFound,
/// with what is registered and the likely reason; kFailedPrecondition for several jobs.
Result<JobChoice> ChooseTargets(const CaptureSelector& selector, const std::vector<NodeProcesses>& nodes,
                                std::optional<uint32_t> caller_uid);

/// "0-3, 7, 9-10".
std::string RankList(std::vector<int32_t> ranks);

}  // namespace lockstep::control
