#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace lockstep::agent {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError };

/// The daemon's log: one line per call, control characters shown as '?'. Thread-safe.
class Log {
 public:
  virtual ~Log() = default;
  /// To standard error, or to a file (made with mode 0600). `level`: "debug", "info", "warning", "error".
  /// Errors: kIo, kPermissionDenied.
  static Result<std::unique_ptr<Log>> Open(const std::string& file, const std::string& level);
  virtual void Write(LogLevel level, const std::string& line) = 0;
  /// Opens the file anew, after it was moved away; takes another level.
  virtual Status Reopen(const std::string& level) = 0;
};

}  // namespace lockstep::agent
