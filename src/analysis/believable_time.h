#pragma once

#include <cstdint>

namespace lockstep::analysis {

/// Damaged files hold times years away from the rest. Up to this length and distance, which is 11.6 days, times are
/// taken for real: their differences and sums stay far inside 64 bits.
inline constexpr int64_t kMaxBelievableNs = 1'000'000'000'000'000;

}  // namespace lockstep::analysis
