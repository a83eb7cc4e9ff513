#pragma once

#include <cstdint>

namespace lockstep::analysis {

/// By how much an end may lie before the last arrival, beyond what the clocks are uncertain by, and still be put down
/// to rounding and stamping of the two.
inline constexpr int64_t kStampingErrorNs = 10'000;

}  // namespace lockstep::analysis
