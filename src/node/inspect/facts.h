#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "model/evidence/inspected_process.h"
#include "node/inspect/inspect.h"

namespace lockstep::inspect {

/// Fills in what /proc tells about a process: its identity, its state over `options.state_window_ns`, its threads
/// without frames. A worker does all reading, because a process can block a reader of its memory or files. What was
/// read before `deadline_monotonic_ns` is kept; the rest is listed in `missing`.
void ReadFacts(pid_t pid, const InspectOptions& options, int64_t deadline_monotonic_ns,
               evidence::InspectedProcess* process);

}  // namespace lockstep::inspect
