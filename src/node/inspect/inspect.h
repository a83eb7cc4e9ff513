#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/evidence/inspected_process.h"

namespace lockstep::inspect {

/// What is looked at; all of it is read only, and the process goes on even when the looker is killed in the middle.
struct InspectOptions {
  bool python_stacks = true;  ///< py-spy where it is installed, or the Python helper's faulthandler.
  bool native_stacks = true;  ///< libdw over a copy of the stack; each thread is held for its copy alone.
  bool flight_record = true;  ///< By what the process has: our helper's signal, its debug server, NCCL's pipe.
  bool devices = true;
  int64_t state_window_ns = 500'000'000;  ///< Between the two readings of /proc.
  int64_t deadline_ns = 20'000'000'000;   ///< For all of it.
  int64_t longest_pause_ns = 10'000'000;  ///< Of one thread; one that takes longer is let go without a stack.
  std::string dump_folder = {};           ///< Where the process may be made to write; "" = its own default.
};

/// Looks at one live process. What could not be had is in `missing` with reason and remedy; the caller may look at
/// processes of its own user, or of all as root. Errors: kNotFound (no such process, or it has ended),
/// kPermissionDenied (another user's). Blocks at most deadline_ns.
Result<evidence::InspectedProcess> InspectProcess(pid_t pid, const InspectOptions& options);

/// Several of one node at once, in parallel, within one deadline. One entry a pid, in order; a process that could not
/// be looked at has `missing` filled.
std::vector<evidence::InspectedProcess> InspectProcesses(const std::vector<pid_t>& pids, const InspectOptions& options);

}  // namespace lockstep::inspect
