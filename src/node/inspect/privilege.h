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

/// Gives root's rights up for those of the process's user, for good; nothing where this process is not root or the
/// other one is root's. False: it could not, or the process has gone.
bool BecomeOwnerOf(pid_t pid);

/// Why the kernel does not let this process look into another one of its own user.
struct PtraceRefusal {
  std::string reason;
  std::string remedy;
};
PtraceRefusal ExplainPtraceRefusal();

}  // namespace lockstep::inspect
