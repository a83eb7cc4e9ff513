#pragma once

#include <chrono>
#include <condition_variable>
#include <stop_token>

#include "base/mutex.h"

namespace lockstep {

/// Waits for `duration`, or until a stop is asked for. Whether the time passed without one.
inline bool Pause(const std::stop_token& stop, std::chrono::nanoseconds duration) {
  Mutex mutex;
  std::condition_variable_any never;
  MutexLock lock(mutex);
  never.wait_for(lock, stop, duration, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace lockstep
