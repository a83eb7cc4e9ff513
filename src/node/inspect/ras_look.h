#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "node/control/api/inspection.h"
#include "node/proc/job_processes.h"

namespace lockstep::inspect {

/// What NCCL's RAS said on this node, or why it said nothing.
struct RasLook {
  std::vector<control::RasReply> replies;  ///< Two where all went well, `interval_ns` apart.
  std::vector<evidence::MissingEvidence> missing;
};

struct RasLookOptions {
  int64_t interval_ns = 3'000'000'000;     ///< Between the two questions; less where time is short.
  int64_t deadline_monotonic_ns = 0;       ///< For all of it.
  uint64_t max_bytes = uint64_t{8} << 20;  ///< Of one answer: it has to fit beside the stacks.
};

/// The port where these processes' RAS takes questions: NCCL_RAS_ADDR of the first that sets it, else NCCL's default.
std::string RasAddressOf(const std::vector<proc::JobProcess>& processes);

/// Asks the RAS of a job twice. Only processes of `processes` are asked: the first job on a node has the default port,
/// and its answers say nothing about another job. Their network namespace is entered if it is not ours. If a job does
/// not use NCCL and does not listen, nothing is reported as missing. Blocks until the deadline at most.
RasLook LookAtRas(const std::vector<proc::JobProcess>& processes, const std::string& host,
                  const RasLookOptions& options);

}  // namespace lockstep::inspect
