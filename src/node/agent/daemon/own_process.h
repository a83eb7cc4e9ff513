#pragma once

#include <cstdint>
#include <optional>

namespace lockstep::agent {

/// This process as the kernel accounts for it, by /proc/self; what cannot be read is unset.
struct OwnProcess {
  std::optional<double> cpu_seconds;
  std::optional<double> resident_bytes;
  std::optional<double> open_fds;
  std::optional<double> most_fds;
  std::optional<double> start_time_seconds;  ///< Since 1970.
};
OwnProcess ReadOwnProcess();

/// kernel.yama.ptrace_scope; nullopt where the kernel has no Yama.
std::optional<int32_t> PtraceScope();
/// Whether this process has CAP_SYS_PTRACE in effect.
bool HasPtraceCapability();

}  // namespace lockstep::agent
