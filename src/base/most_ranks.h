#pragma once

#include <cstdint>

namespace lockstep {

/// A world size is what a process's environment or a file says; a senseless one must not make millions of missing
/// ranks.
inline constexpr int32_t kMostRanks = 1 << 20;

}  // namespace lockstep
