#pragma once

#include <cstdint>

#include "base/nanoseconds.h"

namespace lockstep::control::testing {

/// A deadline that is met only by what has failed.
inline constexpr int64_t kLong = 60 * kSecondNs;

}  // namespace lockstep::control::testing
