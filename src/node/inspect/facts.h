#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "model/evidence/inspected_process.h"
#include "node/inspect/inspect.h"

namespace lockstep::inspect {

/// Fills what /proc tells of a process: who it is, its state over `options.state_window_ns`, its threads without
/// frames. All reading is done by a worker, since a process can hold up whoever reads its memory or files; what
/// was read until `deadline_monotonic_ns` stays, the rest is in `missing`.
void ReadFacts(pid_t pid, const InspectOptions& options, int64_t deadline_monotonic_ns,
               evidence::InspectedProcess* process);

}  // namespace lockstep::inspect
