#pragma once

#include <time.h>

#include <cstdint>

#include "base/nanoseconds.h"

namespace lockstep {

/// The kernel's seconds and nanoseconds as nanoseconds.
constexpr int64_t Nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * kSecondNs + time.tv_nsec; }

/// The other way; `ns` is not negative.
constexpr timespec Timespec(int64_t ns) { return {.tv_sec = ns / kSecondNs, .tv_nsec = ns % kSecondNs}; }

/// What a clock of the kernel says; 0 where it has none.
inline int64_t ClockNs(clockid_t clock) {
  timespec now = {};
  return ::clock_gettime(clock, &now) == 0 ? Nanoseconds(now) : 0;
}

}  // namespace lockstep
