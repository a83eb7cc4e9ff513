#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep::control {

/// What stands behind the '=' of a URL's query.
std::string EncodeQueryValue(std::string_view text);

/// Calls `take` with each name and decoded value of "a=1&b=2". Errors: kInvalidArgument (a bad escape); those of
/// `take`, the first of which ends it.
Status ReadQueryText(std::string_view text,
                     const std::function<Status(std::string_view name, const std::string& value)>& take);

/// A whole number that is not negative. Errors: kInvalidArgument.
Result<int64_t> ReadQueryNumber(std::string_view name, std::string_view text);
/// One that is within bounds. Errors: the same.
Result<uint64_t> ReadQueryNumber(std::string_view name, std::string_view text, uint64_t least, uint64_t most);

}  // namespace lockstep::control
