#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/control/discovery/hosts.h"

namespace lockstep::control {

/// What carries the connection to a node whose daemon has no open port (`--via`).
enum class CarrierKind : uint8_t {
  kSrun,     ///< A step of one task in the running job; the node is one of the job's.
  kSsh,      ///< Without questions (BatchMode).
  kMpiexec,  ///< A one-process MPI job on the node, through the MPI's own launcher (ssh, or the allocation's).
  kCommand,  ///< The user's own, "{host}" in it replaced.
};

struct Carrier {
  CarrierKind kind = CarrierKind::kSsh;
  std::vector<std::string> command = {};  ///< kCommand: its words. kMpiexec: the program ("mpiexec").
};

/// "srun", "ssh", "mpiexec", "mpirun" or a command: words split at spaces, quotes as a shell has them, no expansion.
/// "{host}" in a word becomes the node's name; a command without it gets the name as its last word. The words of
/// `lockstep tunnel` follow. Errors: kInvalidArgument (empty, open quote).
Result<Carrier> ParseCarrier(const std::string& text);

/// The command that runs `lockstep tunnel` on a node with the caller's standard input and output as its own. `lockstep`
/// is the program's absolute path on the node (quoted where a shell there reads it: kSsh and kCommand).
/// `tunnel_arguments` follow "tunnel" (such as "--socket", PATH). `node` is one of `job`'s; a hostfile's job has kind
/// kNone. Errors: kFailedPrecondition (kSrun without a SLURM job), kNotFound (kMpiexec: no mpiexec here),
/// kInvalidArgument (a host's name that begins with "-" or holds spaces).
Result<std::vector<std::string>> TunnelCommand(const Carrier& carrier, const JobNode& node, const JobNodes& job,
                                               const std::string& lockstep,
                                               const std::vector<std::string>& tunnel_arguments = {});

}  // namespace lockstep::control
