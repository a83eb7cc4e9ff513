#pragma once

#include <cstdint>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"

namespace lockstep::control {

/// A port of this machine to which libcurl connects when it wants a new connection to a node behind a tunnel; the
/// connection is given to the tunnel's command. (Shorter ways fail in libcurl 7.88: it connects a socket of
/// CURL_SOCKOPT_ALREADY_CONNECTED once more, and takes a connection to an abstract Unix socket for one whose name is
/// still being looked up, so never uses it again.) Other users may connect too; they are told apart by their port.
class TunnelDoor {
 public:
  /// Errors: kIo.
  static Result<TunnelDoor> Open();
  uint16_t port() const { return port_; }
  /// A socket to connect to port() with; the caller closes it. -1: none to be had.
  int NewSocket();
  /// The connection of the last NewSocket(), where it has come and was not taken yet. Never blocks.
  UniqueFd Knock();

 private:
  TunnelDoor(UniqueFd listener, uint16_t port) : listener_(std::move(listener)), port_(port) {}

  UniqueFd listener_;
  uint16_t port_;
  uint16_t expected_port_ = 0;
};

}  // namespace lockstep::control
