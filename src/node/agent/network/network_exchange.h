#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "node/agent/network/timed_socket.h"
#include "node/control/api/network_test.h"

namespace lockstep::agent {

// The protocol between the two ends; docs/formats/daemon-api.md#network-tests has the bytes. The listening end greets
// first, so that the other one sends nothing to a stranger, and continues only with a peer that knows the secret.

/// The end that listens, first: greets, and waits for the secret until the socket's deadline. Errors: kPermissionDenied
/// (a wrong secret), those of TimedSocket. A peer that fails here is a stranger.
Status AdmitPeer(TimedSocket* socket, const std::string& secret);

/// Then, with who was admitted. Errors: those of TimedSocket, kCorruptData.
Status ServeExchange(TimedSocket* socket);

/// The end that connects: latency, then at most `bytes` each way, each for a quarter of what time is left. Fills
/// `path`; what the other end says of itself is not believed beyond what was sent.
Status MeasureExchange(TimedSocket* socket, const std::string& secret, uint64_t bytes, control::NetworkPath* path);

}  // namespace lockstep::agent
