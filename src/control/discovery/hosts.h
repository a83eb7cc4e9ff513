#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/api/process.h"

namespace lockstep::control {

/// A node of a job, as its scheduler or the user names it.
struct JobNode {
  std::string host;  ///< The scheduler's name for it: what srun -w and ssh take.
  std::string address =
      {};  ///< Where to connect when it is not `host` (Kubernetes: the pod's or node's IP; hostfile: a port).
  uint16_t port = 0;                ///< Of the daemon; 0 = the usual one.
  std::vector<int32_t> ranks = {};  ///< Global ranks that the scheduler says it has; empty where it does not say.
};

/// A job's nodes, and what its scheduler says of it.
struct JobNodes {
  JobKind kind = JobKind::kNone;
  std::string job_id;  ///< As processes of the job have it in their environment (an array element's own id).
  std::string state;   ///< The scheduler's word: "RUNNING".
  std::vector<JobNode> nodes;
};

/// "n[001-003,007],gpu-[1-2]-ib0" as names: in order, duplicates dropped. Errors: kInvalidArgument (reversed, not
/// numeric, unclosed; says where), kLimitExceeded over 65536 names, duplicates counted.
Result<std::vector<std::string>> ExpandHostlist(std::string_view text);

/// A hostfile: a host a line ("#" comments), as for MPI ("host slots=4", "host:4") and for PBS (a host a slot; folded).
/// "host port=N" names the daemon's port. Errors: kNotFound, kIo, kInvalidArgument with the line.
Result<std::vector<JobNode>> ReadHostfile(const std::string& path);

/// The nodes of a running job, by asking the scheduler's commands; kNone: whichever knows the id, SLURM, PBS,
/// Kubernetes.
/// "[slurm:|pbs:|k8s:][NAMESPACE/]ID". Errors: kNotFound (no such job, or it has no nodes yet or any more: says its
/// state), kFailedPrecondition (no scheduler's commands here: says which were looked for), kIo (a command failed: its
/// words).
Result<JobNodes> FindJob(const std::string& job, JobKind kind = JobKind::kNone);

}  // namespace lockstep::control
