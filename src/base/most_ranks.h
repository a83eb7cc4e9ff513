#pragma once

#include <cstdint>

namespace lockstep {

/// The largest world size that is believed. It comes from a process's environment or a file, and a wrong value must
/// not create millions of missing ranks.
inline constexpr int32_t kMostRanks = 1 << 20;

}  // namespace lockstep
