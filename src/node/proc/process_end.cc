#include "node/proc/process_end.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/small_file.h"
#include "node/proc/proc_reader.h"

namespace lockstep::proc {
namespace {

/// The first form of the kernel's struct pidfd_info (include/uapi/linux/pidfd.h), which Debian 12's headers do not
/// have.
struct PidfdInfo {
  uint64_t mask = 0;
  uint64_t cgroup_id = 0;
  uint32_t ids[11] = {};
  int32_t exit_code = 0;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr uint64_t kExitInfo = 1U << 3;
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);

std::optional<int32_t> StatusOfWaitedFor(int pidfd) {
  PidfdInfo info;
  info.mask = kExitInfo;
  if (::ioctl(pidfd, kGetInfo, &info) != 0 || (info.mask & kExitInfo) == 0) return std::nullopt;
  return info.exit_code;
}

std::optional<int32_t> StatusOfZombie(int32_t pid) {
  const auto stat = ParseProcStat(ReadSmallFile(fmt::format("/proc/{}/stat", pid)).value_or(""));
  if (!stat || stat->state != 'Z') return std::nullopt;
  // The kernel also shows 0 to readers that may not trace the process. That case is recognised by the link, which a
  // zombie does not have.
  char target;
  if (::readlink(fmt::format("/proc/{}/exe", pid).c_str(), &target, 1) < 0 && errno == EACCES) return std::nullopt;
  return stat->wait_status;
}

}  // namespace

control::ProcessEnd EndOfStatus(int wait_status, int64_t unix_ns) {
  control::ProcessEnd end{.unix_ns = unix_ns};
  if (WIFSIGNALED(wait_status)) {
    end.signal = WTERMSIG(wait_status);
  } else if (WIFEXITED(wait_status)) {
    end.exit_status = WEXITSTATUS(wait_status);
  }
  return end;
}

control::ProcessEnd ReadProcessEnd(int pidfd, int32_t pid, int64_t now_unix_ns) {
  // In this order: it may be waited for at any moment.
  std::optional<int32_t> status = StatusOfZombie(pid);
  if (!status) status = StatusOfWaitedFor(pidfd);
  return status ? EndOfStatus(*status, now_unix_ns) : control::ProcessEnd{.unix_ns = now_unix_ns};
}

}  // namespace lockstep::proc
