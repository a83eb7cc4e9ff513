#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

/// What is used of /proc/PID/stat and /proc/PID/task/TID/stat, whatever the process is called. Times are in ticks of
/// USER_HZ. Source: proc(5).
struct ProcStat {
  std::string name;
  char state = '?';  ///< 'Z': has ended, and its parent has not asked yet.
  int32_t parent_pid = 0;
  uint64_t cpu_ticks = 0;  ///< User and system.
  uint64_t thread_count = 0;
  uint64_t start_ticks = 0;
  std::optional<uint64_t> resident_pages = {};
  /// As waitpid() gives it, of one that has ended. The kernel shows 0 to whoever may not trace the process.
  std::optional<int32_t> wait_status = {};
};
std::optional<ProcStat> ParseProcStat(std::string_view text);

}  // namespace lockstep
