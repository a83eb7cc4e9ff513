#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/subprocess.h"

namespace lockstep::control {

/// At most 200 bytes of it, control characters as "?": to be quoted in a message.
std::string Shortened(std::string_view text);

/// Whether PATH leads to an executable file of this name.
bool IsInPath(const std::string& program);

/// kIo: `program` failed, with its exit status and its last line on standard error.
Error CommandFailed(std::string_view program, const CommandOutput& output);

/// kNotFound: there is no such job, or it has no nodes now; `message` says which.
inline Error JobNotFound(std::string message) {
  return Error{.code = ErrorCode::kNotFound, .message = std::move(message)};
}

}  // namespace lockstep::control
