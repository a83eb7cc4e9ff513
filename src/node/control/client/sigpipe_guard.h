#pragma once

#include <signal.h>

#include <ctime>

namespace lockstep::control {

/// While it lives, a write to a closed connection is an error to the calling thread and no signal. libcurl leaves
/// signals alone when told to (CURLOPT_NOSIGNAL, needed with threads), and not every TLS library below it can.
class SigpipeGuard {
 public:
  SigpipeGuard() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~SigpipeGuard() {
    // A SIGPIPE that we caused is removed before the mask is restored; one that was pending before is left alone.
    const timespec at_once = {};
    if (!was_pending_) ::sigtimedwait(&pipe_, nullptr, &at_once);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool was_pending_ = false;
};

}  // namespace lockstep::control
