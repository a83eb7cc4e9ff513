#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/evidence/process_state.h"
#include "model/evidence/stack.h"

namespace lockstep::inspect {

/// One reading of what counts up in /proc/PID.
struct ProcCounters {
  int64_t time_ns = 0;                              ///< CLOCK_MONOTONIC.
  std::map<int64_t, int64_t> thread_cpu_ns = {};    ///< By thread; empty: not to be read.
  std::map<int64_t, int64_t> thread_switches = {};  ///< Voluntary and involuntary.
  int64_t read_bytes = -1;                          ///< -1 = unknown (another user's, or no such file).
  int64_t write_bytes = -1;
};
ProcCounters ReadCounters(pid_t pid);

/// State of the process now, and what counted up between the readings. Devices are not looked at.
evidence::ProcessState ReadProcessState(pid_t pid, const ProcCounters& before, const ProcCounters& after);

/// Its threads as /proc shows them, main thread first: no frames, source "proc". At most 4,096.
std::vector<evidence::ThreadStack> ReadThreads(pid_t pid);

}  // namespace lockstep::inspect
