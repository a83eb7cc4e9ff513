#pragma once

#include <string_view>

#include "base/json_value.h"
#include "base/result.h"

namespace lockstep::control {

/// A command's JSON; numbers are kept as the texts that they are written as (PBS writes a variable "007" as 7).
/// `what` names it in the error. Errors: kCorruptData.
Result<JsonTree> ParseCommandJson(std::string_view text, std::string_view what);

}  // namespace lockstep::control
