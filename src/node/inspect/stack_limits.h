#pragma once

#include <cstddef>

namespace lockstep::inspect {

inline constexpr size_t kMaxThreads = 4096;  ///< Of a process; others are not looked at.
inline constexpr size_t kMaxFrames = 512;    ///< Of a thread's stack, counted from the innermost.

}  // namespace lockstep::inspect
