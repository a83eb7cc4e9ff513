#include "node/agent/daemon/lease.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>

namespace lockstep::agent {
namespace {

constexpr int64_t kGraceNs = 2'000'000'000;

}  // namespace

Result<Lease> Lease::Open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.valid()) return Lease(std::move(fd));
  return Error{errno == ENOENT   ? ErrorCode::kNotFound
               : errno == EACCES ? ErrorCode::kPermissionDenied
                                 : ErrorCode::kIo,
               fmt::format("the lease cannot be opened: {}", std::strerror(errno)), path};
}

bool Lease::IsOver(int64_t now_ns) {
  if (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) {
    free_since_ns_ = -1;
    return false;
  }
  if (free_since_ns_ < 0) free_since_ns_ = now_ns;
  if (now_ns - free_since_ns_ >= kGraceNs) return true;
  ::flock(fd_.get(), LOCK_UN);
  return false;
}

}  // namespace lockstep::agent
