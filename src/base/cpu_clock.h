#pragma once

#include <cstdint>

namespace lockstep {

/// Processor time the calling thread has used so far, in nanoseconds. Differences are meaningful within one thread
/// only.
int64_t ThreadCpuNs();

}  // namespace lockstep
