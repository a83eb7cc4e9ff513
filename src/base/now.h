#pragma once

#include <chrono>
#include <cstdint>

namespace lockstep {

/// Nanoseconds since 1970 by the host's wall clock, which may be set.
inline int64_t UnixNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Nanoseconds of CLOCK_MONOTONIC, which only goes on.
inline int64_t SteadyNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace lockstep
