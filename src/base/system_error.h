#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "base/error.h"

namespace lockstep {

/// "cannot write: no space left on device": what the operating system refused with errno `code`, of the file `path`.
inline Error SystemError(const std::string& path, const char* doing, int code) {
  return Error{.code = code == EACCES || code == EPERM || code == EROFS ? ErrorCode::kPermissionDenied : ErrorCode::kIo,
               .message = fmt::format("cannot {}: {}", doing, std::generic_category().message(code)),
               .file = path};
}

}  // namespace lockstep
