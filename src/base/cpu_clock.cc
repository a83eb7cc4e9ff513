#include "base/cpu_clock.h"

#include "base/timespec.h"

namespace lockstep {

int64_t ThreadCpuNs() { return ClockNs(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace lockstep
