#include "node/control/client/fan_out.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>

namespace lockstep::control {

void ForEachNode(size_t count, size_t parallel, int64_t deadline_ns,
                 const std::function<void(size_t index, int64_t left_ns)>& work,
                 const std::function<void(size_t index)>& late) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  std::atomic<size_t> next = 0;
  const auto run = [&] {
    for (size_t i = next++; i < count; i = next++) {
      const int64_t left_ns =
          deadline_ns - std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
      if (left_ns > 0) {
        work(i, left_ns);
      } else {
        late(i);
      }
    }
  };
  std::vector<std::jthread> threads;
  const size_t wanted = std::min(count, std::max<size_t>(parallel, 1));
  try {
    while (threads.size() + 1 < wanted) threads.emplace_back(run);
  } catch (const std::system_error&) {
    // No more threads to be had (RLIMIT_NPROC, a container's pids limit): those that there are do the work.
  }
  run();
}

}  // namespace lockstep::control
