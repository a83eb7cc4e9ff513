#include "base/cpu_clock.h"

#include <ctime>

namespace lockstep {

int64_t ThreadCpuNs() {
  timespec now{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0) return 0;
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + static_cast<int64_t>(now.tv_nsec);
}

}  // namespace lockstep
