#pragma once

#include <string>
#include <utility>

#include "base/error.h"

namespace lockstep {

/// What the caller asked for makes no sense, and why.
inline Error InvalidArgument(std::string message) {
  return Error{.code = ErrorCode::kInvalidArgument, .message = std::move(message)};
}

}  // namespace lockstep
