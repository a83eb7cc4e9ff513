#pragma once

#include <cstddef>
#include <string_view>

#include "base/json_value.h"
#include "base/result.h"

namespace lockstep::evidence {

constexpr size_t kMaxJsonBytes = size_t{128} << 20;

/// Parses a file or an answer. Errors: kLimitExceeded, kCorruptData with the place.
Result<JsonTree> ParseJson(std::string_view text);
/// The same of one that is an object; else kCorruptData.
Result<JsonTree> ParseObject(std::string_view text);

}  // namespace lockstep::evidence
