#include "measure/nccl/watchdog.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "base/now.h"
#include "base/pause.h"

namespace lockstep::nccl_bench {
namespace {

constexpr std::chrono::milliseconds kLookEvery{100};

}  // namespace

Watchdog::Watchdog(int rank, std::chrono::seconds limit)
    : rank_(rank), limit_(limit), thread_([this](const std::stop_token& stop) {
        while (Pause(stop, kLookEvery)) {
          const int64_t begin_ns = begin_ns_.load(std::memory_order_acquire);
          if (begin_ns == 0 || SteadyNow() - begin_ns <= std::chrono::nanoseconds(limit_).count()) continue;
          std::fputs(
              fmt::format("lockstep bench: rank {}: {} did not come back in {} s: another rank is stuck, lost or "
                          "cannot be reached; NCCL_DEBUG=INFO says more, --timeout SECONDS waits longer\n",
                          rank_, what_.load(), limit_.count())
                  .c_str(),
              stderr);
          std::_Exit(1);  // Nothing can be tidied: the call still runs.
        }
      }) {}

void Watchdog::Begin(const char* what) {
  what_.store(what, std::memory_order_relaxed);
  begin_ns_.store(SteadyNow(), std::memory_order_release);
}

}  // namespace lockstep::nccl_bench
