#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace lockstep::agent {

/// A file on which every process that needs this daemon holds a shared lock (flock).
class Lease {
 public:
  /// Errors: kNotFound, kPermissionDenied, kIo.
  static Result<Lease> Open(const std::string& path);

  /// Call it about once a second. True when no process has held it for two seconds: this daemon then holds it alone
  /// until it has ended, so that a late process waits and starts another daemon.
  bool IsOver(int64_t now_ns);

 private:
  explicit Lease(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
  int64_t free_since_ns_ = -1;
};

}  // namespace lockstep::agent
