#pragma once

#include <time.h>

#include <cstdint>

#include "inside/trace/file_format.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace lockstep::instrument {

/// Not 0: ticks are the processor's counter, which costs half of a system clock. Set once, before recording begins.
extern uint32_t counter_is_clock;

inline int64_t Nanoseconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

inline uint64_t Now() {
#if defined(__x86_64__)
  if (__builtin_expect(counter_is_clock != 0, 1)) return __rdtsc();
#elif defined(__aarch64__)
  if (__builtin_expect(counter_is_clock != 0, 1)) {
    uint64_t ticks;
    asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
  }
#endif
  return static_cast<uint64_t>(Nanoseconds(CLOCK_MONOTONIC));
}

/// Uses the processor's counter where it runs evenly on all cores: the processor says so, and the kernel relies on it.
ClockKind ChooseClock();

/// Reads the three clocks together; the best of a few tries.
Anchor ReadAnchor();

}  // namespace lockstep::instrument
