#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace lockstep {

/// Waits for `duration`, or until a stop is asked for. Whether the time passed without one.
inline bool Pause(const std::stop_token& stop, std::chrono::nanoseconds duration) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, duration, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace lockstep
