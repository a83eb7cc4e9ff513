#include "inside/trace/clock.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace lockstep::instrument {

uint32_t counter_is_clock = 0;

namespace {

#if defined(__x86_64__)
/// A kernel that found the counter unsteady keeps time by another device.
bool KernelTrustsCounter() {
  const int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char name[64] = {};
  const ssize_t bytes = read(fd, name, sizeof(name) - 1);
  close(fd);
  if (bytes <= 0) return false;
  name[strcspn(name, "\n")] = '\0';
  return strcmp(name, "tsc") == 0 || strcmp(name, "kvm-clock") == 0 || strcmp(name, "hyperv_clocksource_tsc_page") == 0;
}

bool CounterIsInvariant() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
}
#endif

}  // namespace

ClockKind ChooseClock() {
#if defined(__x86_64__)
  if (CounterIsInvariant() && KernelTrustsCounter()) {
    counter_is_clock = 1;
    return ClockKind::kTimeStampCounter;
  }
#elif defined(__aarch64__)
  counter_is_clock = 1;  // The architecture promises it.
  return ClockKind::kArmCounter;
#endif
  counter_is_clock = 0;
  return ClockKind::kMonotonic;
}

Anchor ReadAnchor() {
  Anchor best = {};
  for (int i = 0; i < 3; ++i) {
    const uint64_t before = Now();
    const int64_t monotonic_ns = Nanoseconds(CLOCK_MONOTONIC);
    const int64_t wall_ns = Nanoseconds(CLOCK_REALTIME);
    const uint64_t bracket = Now() - before;
    if (i > 0 && bracket >= best.bracket_ticks) continue;
    best = {before + bracket / 2, monotonic_ns, wall_ns, bracket};
  }
  return best;
}

}  // namespace lockstep::instrument
