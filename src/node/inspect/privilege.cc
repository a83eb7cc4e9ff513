#include "node/inspect/privilege.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "node/inspect/proc_files.h"

namespace lockstep::inspect {

std::optional<Owner> OwnerOf(pid_t pid) {
  const auto status = ReadProcFile(pid, "status");
  if (!status) return std::nullopt;
  const auto fields = ParseFields(*status);
  const auto effective = [&](const char* name) -> std::optional<uint32_t> {
    const auto found = fields.find(name);  // Real, effective, saved, file system.
    if (found == fields.end()) return std::nullopt;
    std::istringstream words(found->second);
    uint32_t real = 0;
    uint32_t id = 0;
    if (!(words >> real >> id)) return std::nullopt;
    return id;
  };
  const auto uid = effective("Uid");
  const auto gid = effective("Gid");
  if (!uid || !gid) return std::nullopt;
  return Owner{.uid = *uid, .gid = *gid};
}

bool BecomeOwnerOf(pid_t pid) {
  if (::geteuid() != 0) return true;
  const auto owner = OwnerOf(pid);
  if (!owner) return false;
  if (owner->uid == 0) return true;
  const bool done = ::setgroups(0, nullptr) == 0 && ::setresgid(owner->gid, owner->gid, owner->gid) == 0 &&
                    ::setresuid(owner->uid, owner->uid, owner->uid) == 0;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // A change of user forgets it.
  return done;
}

PtraceRefusal ExplainPtraceRefusal() {
  std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
  int scope = 0;
  if (file >> scope && scope > 0) {
    if (scope >= 3) {
      return {.reason = "kernel.yama.ptrace_scope is 3: no process may inspect another",
              .remedy = "enable the job's own dumps: lockstep.enable_hang_dumps()"};
    }
    return {.reason = fmt::format("kernel.yama.ptrace_scope is {}: only root may inspect a process", scope),
            .remedy =
                "run lockstepd as root, or: sysctl kernel.yama.ptrace_scope=0, or enable the job's own dumps: "
                "lockstep.enable_hang_dumps()"};
  }
  return {.reason =
              "the kernel refuses access to it: another debugger is attached, it is not dumpable, or a container or "
              "seccomp filter forbids ptrace",
          .remedy =
              "give this process CAP_SYS_PTRACE, detach the other debugger, or enable the job's own dumps: "
              "lockstep.enable_hang_dumps()"};
}

}  // namespace lockstep::inspect
