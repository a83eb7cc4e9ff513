#pragma once

#include <cstddef>
#include <string_view>

#include "base/json_value.h"
#include "base/result.h"

namespace lockstep::control {

constexpr size_t kJsonDepth = 16;  ///< Objects and lists within each other.

/// Parses a whole message. Errors: kCorruptData with the byte at which it stops being JSON; kLimitExceeded when nested
/// deeper than kJsonDepth.
Result<JsonTree> ParseJson(std::string_view text);

}  // namespace lockstep::control
