#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace lockstep::agent {

/// A file that those who need this daemon hold a shared lock on (flock), for as long as they need it.
class Lease {
 public:
  /// Errors: kNotFound, kPermissionDenied, kIo.
  static Result<Lease> Open(const std::string& path);

  /// To be asked about once a second. True when nobody has held it for two seconds: it is held by this daemon alone
  /// then, until the daemon has gone, so that who comes too late waits and starts another.
  bool IsOver(int64_t now_ns);

 private:
  explicit Lease(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
  int64_t free_since_ns_ = -1;
};

}  // namespace lockstep::agent
