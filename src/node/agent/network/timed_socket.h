#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "node/control/api/network_test.h"

namespace lockstep::agent {

using NetworkClock = std::chrono::steady_clock;

/// A connected TCP socket on which nothing takes longer than to `deadline`, nor beyond a stop. Not thread-safe.
class TimedSocket {
 public:
  /// `stop_fd` becomes readable when all is to end; -1: never.
  TimedSocket(UniqueFd fd, NetworkClock::time_point deadline, int stop_fd);

  /// Errors: kCancelled (not until `until`, which is taken as a length from now; or a stop), kIo (what the system
  /// says).
  static Result<TimedSocket> Connect(const control::NetworkAddress& address, uint16_t port,
                                     NetworkClock::time_point until, NetworkClock::time_point deadline, int stop_fd);

  /// All of it. Errors: kCancelled (the deadline, a stop), kIo (closed by the other end, or the system's word).
  Status Send(const void* data, size_t size);
  Status Receive(void* data, size_t size);

  /// Segments sent over this connection, and those sent once more, as the kernel counts them.
  struct Segments {
    uint64_t sent = 0;
    uint64_t retransmitted = 0;
  };
  Result<Segments> CountSegments() const;
  NetworkClock::time_point deadline() const { return deadline_; }
  void set_deadline(NetworkClock::time_point deadline) { deadline_ = deadline; }

 private:
  UniqueFd fd_;
  NetworkClock::time_point deadline_;
  int stop_fd_ = -1;
};

/// Waits until `fd` is ready for `events`. Errors: kCancelled.
Status WaitFor(int fd, short events, NetworkClock::time_point until, int stop_fd);

}  // namespace lockstep::agent
