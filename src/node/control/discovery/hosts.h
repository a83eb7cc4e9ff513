#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/control/api/process.h"

namespace lockstep::control {

inline constexpr size_t kMostNodes = 65536;  ///< Of one job.

/// A node of a job, as its scheduler or the user names it.
struct JobNode {
  std::string host;  ///< The scheduler's name for it: what srun -w and ssh take.
  std::string address =
      {};  ///< Where to connect when it is not `host` (Kubernetes: the pod's or node's IP; hostfile: a port).
  uint16_t port = 0;                ///< Of the daemon; 0 = the usual one.
  std::vector<int32_t> ranks = {};  ///< Tasks of the job's only step by the scheduler's count, or a pod's processes:
                                    ///< global ranks unless the tasks are launchers (torchrun). Empty: not said.
  std::optional<int32_t> het_group =
      {};  ///< Which part of a heterogeneous SLURM job it is in: what srun needs to know.
};

/// A job's nodes, and what its scheduler says of it.
struct JobNodes {
  JobKind kind = JobKind::kNone;
  /// As processes of the job have it in their environment: SLURM_JOB_ID (an array element's own number, a heterogeneous
  /// job's first), PBS_JOBID. Kubernetes: the job's name, from the pods' host names; empty where these are of no
  /// one form, as an indexed Job's are: then any process of the nodes may be the job's.
  std::string job_id;
  std::string state;  ///< The scheduler's word: "RUNNING".
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
/// "[slurm:|pbs:|k8s:][NAMESPACE/]ID". An ID of SLURM's: "12", "12_3" (array), "13+1" (part of a heterogeneous job),
/// "12.0" (step); of PBS's: "12", "12.server", "13[4].server"; of Kubernetes': the name of a PyTorchJob, TrainJob,
/// JobSet, Job, MPIJob, Volcano job or Ray cluster, of a pod, or a label selector ("app=train"). Takes up to a minute
/// where commands do not answer. Errors: kNotFound (no such job, or it has no nodes yet or any more: says its state),
/// kInvalidArgument (no job's name; or an array of which several elements run: names them), kFailedPrecondition (no
/// scheduler's commands here: says which were looked for), kIo, kCancelled (a command failed or did not answer: its
/// words), kCorruptData (its output is not understood).
Result<JobNodes> FindJob(const std::string& job, JobKind kind = JobKind::kNone);

}  // namespace lockstep::control
