#pragma once

#include <string>

#include "base/result.h"

namespace lockstep::control {

/// The bearer token of a file: its only line. Only the caller (or root) may be able to read the file. Errors:
/// kNotFound, kPermissionDenied (says the chmod), kIo, kCorruptData (empty, several lines, over 4 KiB, odd characters).
Result<std::string> ReadToken(const std::string& path);

/// Whether an address is this machine's own whatever the network: 127.x.x.x, ::1, localhost.
bool IsLoopback(const std::string& address);

}  // namespace lockstep::control
