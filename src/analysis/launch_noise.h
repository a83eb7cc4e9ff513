#pragma once

#include <cstdint>

namespace lockstep::analysis {

/// Differences in time below it are the noise of launches.
inline constexpr int64_t kLaunchNoiseNs = 5'000;

}  // namespace lockstep::analysis
