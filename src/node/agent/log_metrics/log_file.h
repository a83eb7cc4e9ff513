#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/unique_fd.h"

namespace lockstep::agent {

/// A log that grows, held open so that what is written before it is rotated away is still read. Not thread-safe.
class LogFile {
 public:
  using Identity = std::pair<uint64_t, uint64_t>;  ///< Device and inode.

  /// `begins_at_end`: what it holds already is not looked at.
  LogFile(UniqueFd fd, Identity identity, bool begins_at_end);

  /// Hands over what came since the last look: at most kMostLogBytes, in pieces. Of more than kMostBehindBytes the
  /// older part is skipped. A file that became shorter was truncated: it is read from its beginning.
  struct Look {
    uint64_t skipped_bytes = 0;
    bool breaks = false;  ///< What was handed over does not go on with what came before.
  };
  Look ReadOn(const std::function<void()>& on_break, const std::function<void(std::string_view)>& take);

  Identity identity() const { return identity_; }

 private:
  UniqueFd fd_;
  Identity identity_;
  uint64_t offset_ = 0;
};

constexpr uint64_t kMostLogBytes = uint64_t{1} << 20;
constexpr uint64_t kMostBehindBytes = uint64_t{8} << 20;

}  // namespace lockstep::agent
