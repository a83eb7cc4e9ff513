#pragma once

#include <unistd.h>

namespace lockstep::ingest {

/// While it lives, files are opened as a user who may not read everything: root becomes the user nobody, other users
/// stay themselves.
class Unprivileged {
 public:
  Unprivileged() : was_root_(::geteuid() == 0), stepped_down_(!was_root_ || ::seteuid(kNobody) == 0) {}
  ~Unprivileged() {
    if (was_root_ && ::seteuid(0) != 0) ::_exit(1);
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;
  bool ok() const { return stepped_down_; }

 private:
  static constexpr uid_t kNobody = 65534;
  const bool was_root_;
  const bool stepped_down_;
};

}  // namespace lockstep::ingest
