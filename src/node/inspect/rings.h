#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/evidence/inspected_process.h"
#include "node/proc/job_processes.h"

namespace lockstep::inspect {

/// What the NCCL profiler plugin keeps of the process, as much as matters for a hang; "" = it keeps nothing, or its
/// file could not be had by then: a file system that hangs is left behind with a thread.
std::string ReadRing(pid_t pid, int64_t deadline_monotonic_ns);

/// Ranks of this host that are no more and have left their rings beside those of `inspected`, with which they shared a
/// communicator: as processes that are gone, with their rings. `wanted` says of which ranks. `inspected` is parallel to
/// `processes`, which says whose they are.
std::vector<evidence::InspectedProcess> FindEndedRanks(const std::vector<proc::JobProcess>& processes,
                                                       const std::vector<evidence::InspectedProcess>& inspected,
                                                       const std::function<bool(int32_t rank)>& wanted);

}  // namespace lockstep::inspect
