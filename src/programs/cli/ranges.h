#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace lockstep::cli {

/// Reads "0-3,7" as closed ranges, [0, 3] and [7, 7]; numbers are >= 0. `what` names the flag in errors.
/// Errors: kInvalidArgument for anything else ("3-1", "a", "1,,2").
Result<std::vector<std::pair<int64_t, int64_t>>> ParseRanges(const std::string& text, const char* what);

/// Reads a time with its unit, "1.5s", "200ms", "30us", "5ns", "2m", exactly (decimals below a nanosecond are cut).
/// Errors: kInvalidArgument.
Result<int64_t> ParseTime(const std::string& text, const char* what);

}  // namespace lockstep::cli
