#pragma once

#include <string>

#include "base/http/http_message.h"

namespace lockstep::http {

/// The ends of an accepted connection, by what the kernel says.
struct ConnectionEnds {
  Peer peer = {};
  std::string source = {};         ///< What its limits are counted by (ServerLimits).
  std::string local_address = {};  ///< The IP address the client connected to, IPv6 without brackets; or empty.
};

enum class OwnerLookup : uint8_t { kNone, kLoopback };

/// Of the connected socket `fd`. With kLoopback the uid of a loopback peer is looked up (peer_owner.h); a Unix socket's
/// is always known.
ConnectionEnds ReadConnectionEnds(int fd, OwnerLookup lookup);

}  // namespace lockstep::http
