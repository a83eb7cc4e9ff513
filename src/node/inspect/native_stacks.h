#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/evidence/stack.h"

namespace lockstep::inspect {

struct NativeStacks {
  std::map<int64_t, std::vector<evidence::StackFrame>> frames;  ///< By thread id, innermost first.
  int64_t longest_pause_ns = 0;
  size_t held_count = 0;  ///< Threads that had to be held; the rest slept.
  std::string reason;     ///< Why there are none, or not all; "" = all are there.
  std::string remedy;
};

/// Native frames of the given threads of a process. Sleeping threads are not touched where their stack unwinds without
/// the registers that only a stopped thread shows; all others are held one at a time (thread_snapshot.h). Runs in a
/// process of its own, as the process's own user where this one is root, until `deadline_monotonic_ns` at most; what
/// was found until then stays.
NativeStacks ReadNativeStacks(pid_t pid, const std::vector<pid_t>& tids, int64_t longest_pause_ns,
                              int64_t deadline_monotonic_ns);

}  // namespace lockstep::inspect
