#pragma once

#include <cstdint>
#include <limits>

namespace lockstep::analysis {

/// a + b, held at the ends of int64_t: sums of durations from a hostile file must not overflow.
inline int64_t AddSaturating(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
}

}  // namespace lockstep::analysis
