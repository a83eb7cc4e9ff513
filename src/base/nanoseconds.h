#pragma once

#include <cstdint>

namespace lockstep {

inline constexpr int64_t kMillisecondNs = 1'000'000;
inline constexpr int64_t kSecondNs = 1'000'000'000;
inline constexpr int64_t kHourNs = 3600 * kSecondNs;

/// Nanoseconds as seconds.
inline double Seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

}  // namespace lockstep
