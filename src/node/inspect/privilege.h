#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::inspect {

/// Effective user and group of a process, by /proc/PID/status.
struct Owner {
  uint32_t uid = 0;
  uint32_t gid = 0;
};
std::optional<Owner> OwnerOf(pid_t pid);

/// Gives up root's rights for those of the process's user, permanently. Does nothing if this process is not root, or if
/// the other one belongs to root. False: it could not, or the process has gone.
bool BecomeOwnerOf(pid_t pid);

/// Why the kernel does not let this process look into another one of its own user.
struct PtraceRefusal {
  std::string reason;
  std::string remedy;
};
PtraceRefusal ExplainPtraceRefusal();

}  // namespace lockstep::inspect
