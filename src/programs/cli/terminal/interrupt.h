#pragma once

#include <atomic>

namespace lockstep::cli {

/// While it lives, SIGINT and SIGTERM only set a flag, so that work on other nodes can be ended in order; a second
/// signal ends the program as usual. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// Stays set after the guard has gone, until the next one is made.
  static const std::atomic<bool>& interrupted();

 private:
  using Handler = void (*)(int);
  Handler int_;
  Handler term_;
};

}  // namespace lockstep::cli
