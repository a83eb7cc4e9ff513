#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::http {

/// What one client, or all of them, may cost. Nothing that is read is kept beyond these.
/// A source is a user where the kernel tells it (Unix socket; loopback, for a server that takes bodies), else an IPv4
/// address, else an IPv6 network of 64 bits.
struct ServerLimits {
  uint32_t header_bytes = 16 * 1024;
  size_t connection_count = 512;            ///< Further ones are closed at once.
  size_t connection_count_per_source = 32;  ///< Further ones are closed at once.
  /// But a connection that has waited so long for its client to send a whole request gives its place to a new one.
  int crowded_seconds = 1;
  int header_seconds = 10;              ///< For a whole header, from its first byte or from the connection's begin.
  size_t body_bytes = size_t{1} << 20;  ///< Of a request; a larger one is answered 413.
  size_t all_bodies_bytes = size_t{16} << 20;  ///< Of all requests together; one more is answered 503.
  int body_seconds = 30;                       ///< For a whole body.
  size_t drained_bytes =
      size_t{1} << 20;          ///< Of a refused request's body: read and dropped, so that the answer arrives.
  int idle_seconds = 60;        ///< Between the requests of a connection.
  int write_seconds = 60;       ///< Without progress in sending.
  int keep_alive_seconds = 15;  ///< Without an event, a stream sends a comment, so that proxies do not close it.
};

/// What became of connections since Open.
struct ConnectionCounts {
  uint64_t open = 0;
  uint64_t accepted = 0;
  uint64_t refused = 0;    ///< Closed at once: beyond a limit.
  uint64_t displaced = 0;  ///< Closed while they waited, to make room.
};

}  // namespace lockstep::http
