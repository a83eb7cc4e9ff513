#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "model/log_line/level.h"

namespace lockstep::cli {

/// What `--level` and its like on flags accept, for their help.
inline constexpr const char* kLevelNames = "trace|debug|info|warning|error|fatal";

/// Reads the level that a flag names; nullopt of an empty text. `flag` is what errors call it.
/// Errors: kInvalidArgument for anything else.
Result<std::optional<logs::Level>> ParseLevel(const std::string& text, const char* flag);

}  // namespace lockstep::cli
