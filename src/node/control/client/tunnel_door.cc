#include "node/control/client/tunnel_door.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace lockstep::control {
namespace {

/// A TCP socket with a port of its own on the loopback address.
UniqueFd LoopbackSocket(uint16_t* port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof(address);
  if (!fd.valid() || ::bind(fd.get(), generic, size) != 0 || ::getsockname(fd.get(), generic, &size) != 0) return {};
  *port = ntohs(address.sin_port);
  return fd;
}

}  // namespace

Result<TunnelDoor> TunnelDoor::Open() {
  uint16_t port = 0;
  UniqueFd listener = LoopbackSocket(&port);
  if (!listener.valid() || ::fcntl(listener.get(), F_SETFL, O_NONBLOCK) != 0 || ::listen(listener.get(), 8) != 0) {
    return Error{ErrorCode::kIo, fmt::format("no port of 127.0.0.1 for a tunnel: {}", std::strerror(errno))};
  }
  return TunnelDoor(std::move(listener), port);
}

int TunnelDoor::NewSocket() {
  const UniqueFd fd = LoopbackSocket(&expected_port_);
  return fd.valid() ? ::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0) : -1;
}

UniqueFd TunnelDoor::Knock() {
  UniqueFd ours;
  sockaddr_in peer = {};
  socklen_t size = sizeof(peer);
  for (int fd = 0; (fd = ::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC)) >= 0;
       size = sizeof(peer)) {
    UniqueFd knocking(fd);
    if (peer.sin_addr.s_addr != htonl(INADDR_LOOPBACK) || ntohs(peer.sin_port) != expected_port_) continue;
    const int yes = 1;  // Requests and answers are small, and a tunnel must not add a delay to each.
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    ours = std::move(knocking);
  }
  return ours;
}

}  // namespace lockstep::control
