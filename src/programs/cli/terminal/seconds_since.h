#pragma once

#include <chrono>

namespace lockstep::cli {

/// Seconds that have passed since `start`.
inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace lockstep::cli
