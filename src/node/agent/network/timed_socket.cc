#include "node/agent/network/timed_socket.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/timed_socket_io.h"

namespace lockstep::agent {
namespace {

Status Said(int error) {
  switch (error) {
    case 0: return {};
    case ETIME: return Error{ErrorCode::kCancelled, "no answer in time"};
    case ECANCELED: return Error{ErrorCode::kCancelled, "the daemon stops"};
    default: return Error{ErrorCode::kIo, std::strerror(error)};
  }
}

int64_t SteadyNs(NetworkClock::time_point time) { return std::chrono::nanoseconds(time.time_since_epoch()).count(); }

}  // namespace

Status WaitFor(int fd, short events, NetworkClock::time_point until, int stop_fd) {
  return Said(WaitWithin(fd, events, SteadyNs(until), stop_fd));
}

TimedSocket::TimedSocket(UniqueFd fd, NetworkClock::time_point deadline, int stop_fd)
    : fd_(std::move(fd)), deadline_(deadline), stop_fd_(stop_fd) {
  const int on = 1;
  ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // Else a latency would be that of delayed ACKs.
}

Result<TimedSocket> TimedSocket::Connect(const control::NetworkAddress& address, uint16_t port,
                                         NetworkClock::time_point until, NetworkClock::time_point deadline,
                                         int stop_fd) {
  sockaddr_in v4 = {};
  sockaddr_in6 v6 = {};
  const bool is_v4 = ::inet_pton(AF_INET, address.address.c_str(), &v4.sin_addr) == 1;
  if (!is_v4 && ::inet_pton(AF_INET6, address.address.c_str(), &v6.sin6_addr) != 1) {
    return Error{ErrorCode::kInvalidArgument, "'" + address.address + "' is not an address"};
  }
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  UniqueFd fd(::socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return Said(errno).error();
  const sockaddr* target = is_v4 ? reinterpret_cast<const sockaddr*>(&v4) : reinterpret_cast<const sockaddr*>(&v6);
  RETURN_IF_ERROR(Said(ConnectWithin(fd.get(), target, is_v4 ? sizeof(v4) : sizeof(v6), SteadyNs(until), stop_fd)));
  return TimedSocket(std::move(fd), deadline, stop_fd);
}

Status TimedSocket::Send(const void* data, size_t size) {
  return Said(SendWithin(fd_.get(), {static_cast<const char*>(data), size}, SteadyNs(deadline_), stop_fd_));
}

Status TimedSocket::Receive(void* data, size_t size) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    size_t count = 0;
    RETURN_IF_ERROR(Said(ReceiveWithin(fd_.get(), at, size, &count, SteadyNs(deadline_), stop_fd_)));
    if (count == 0) return Error{ErrorCode::kIo, "closed by the other end"};
    at += count;
    size -= count;
  }
  return {};
}

Result<TimedSocket::Segments> TimedSocket::CountSegments() const {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (::getsockopt(fd_.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return Said(errno).error();
  return Segments{info.tcpi_segs_out, info.tcpi_total_retrans};
}

}  // namespace lockstep::agent
