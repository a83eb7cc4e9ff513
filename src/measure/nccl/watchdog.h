#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace lockstep::nccl_bench {

/// Ends the process with status 1 and a word on stderr when a call of a library does not come back: one that waits for
/// another rank inside NCCL cannot be interrupted from outside. One call at a time.
class Watchdog {
 public:
  Watchdog(int rank, std::chrono::seconds limit);

  /// For as long as it lives, the call `what` (a literal) is watched.
  class Watch {
   public:
    Watch(Watchdog* watchdog, const char* what) : watchdog_(watchdog) { watchdog_->Begin(what); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch() { watchdog_->begin_ns_.store(0, std::memory_order_release); }

   private:
    Watchdog* const watchdog_;
  };

 private:
  void Begin(const char* what);

  const int rank_;
  const std::chrono::seconds limit_;
  std::atomic<const char*> what_ = nullptr;
  std::atomic<int64_t> begin_ns_ = 0;  // 0: nothing is watched.
  std::jthread thread_;                // The last member: it uses the others.
};

}  // namespace lockstep::nccl_bench
