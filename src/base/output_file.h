#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep {

/// Checks that `path` can be written: it is a regular file or nothing yet, in a folder that exists.
/// Errors: kInvalidArgument for a folder, device, pipe or socket; kNotFound for a missing folder.
Status CheckOutputFile(const std::string& path);

/// Writes a file whole or not at all: into a new file beside it, which then takes its name. A link is followed. `write`
/// gives up by setting the stream's failbit.
/// Errors: those of CheckOutputFile; kIo and kPermissionDenied with the system's words; kCancelled when given up.
Status WriteOutputFile(const std::string& path, const std::function<void(std::ostream&)>& write);
/// The same of bytes that are there.
Status WriteOutputFile(const std::string& path, std::string_view bytes);

}  // namespace lockstep
