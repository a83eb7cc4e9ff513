#pragma once

#include <atomic>
#include <chrono>
#include <optional>

namespace lockstep::query {

/// Ends a query early, on request of another thread or a signal handler, or by the clock.
class StopSign {
 public:
  using Clock = std::chrono::steady_clock;

  /// Before a query: forgets what was asked before. No deadline: none.
  void Arm(std::optional<Clock::time_point> deadline) {
    deadline_ = deadline;
    timed_out_ = false;
    stop_ = false;
  }
  /// Async-signal-safe.
  void Ask() { stop_.store(true, std::memory_order_relaxed); }
  bool is_set() const { return stop_.load(std::memory_order_relaxed); }
  bool timed_out() const { return timed_out_; }
  /// is_set(), after a look at the clock: every few hundred rows.
  bool Check() {
    if (!is_set() && deadline_ && Clock::now() >= *deadline_) {
      timed_out_ = true;
      Ask();
    }
    return is_set();
  }

 private:
  std::atomic<bool> stop_{false};
  static_assert(std::atomic<bool>::is_always_lock_free);
  bool timed_out_ = false;
  std::optional<Clock::time_point> deadline_;
};

}  // namespace lockstep::query
