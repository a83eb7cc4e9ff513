#include "node/agent/network/timed_socket.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace lockstep::agent {
namespace {

Error SystemError(int number) { return {ErrorCode::kIo, std::strerror(number)}; }

}  // namespace

Status WaitFor(int fd, short events, NetworkClock::time_point until, int stop_fd) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - NetworkClock::now()).count();
    if (left <= 0) return Error{ErrorCode::kCancelled, "no answer in time"};
    std::array<pollfd, 2> fds = {{{fd, events, 0}, {stop_fd, POLLIN, 0}}};
    const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(std::min<int64_t>(left, 60'000)));
    if (ready < 0 && errno != EINTR) return SystemError(errno);
    if (ready > 0 && fds[1].revents != 0) return Error{ErrorCode::kCancelled, "the daemon stops"};
    if (ready > 0 && fds[0].revents != 0) return {};
  }
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
  if (!fd.valid()) return SystemError(errno);
  const sockaddr* target = is_v4 ? reinterpret_cast<const sockaddr*>(&v4) : reinterpret_cast<const sockaddr*>(&v6);
  if (::connect(fd.get(), target, is_v4 ? sizeof(v4) : sizeof(v6)) != 0) {
    if (errno != EINPROGRESS) return SystemError(errno);
    RETURN_IF_ERROR(WaitFor(fd.get(), POLLOUT, until, stop_fd));
    int error = 0;
    socklen_t size = sizeof(error);
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) return SystemError(errno);
    if (error != 0) return SystemError(error);
  }
  return TimedSocket(std::move(fd), deadline, stop_fd);
}

Status TimedSocket::Wait(short events) const { return WaitFor(fd_.get(), events, deadline_, stop_fd_); }

Status TimedSocket::Send(const void* data, size_t size) {
  const auto* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t count = ::send(fd_.get(), at, size, MSG_NOSIGNAL);
    if (count >= 0) {
      at += count;
      size -= static_cast<size_t>(count);
    } else if (errno == EAGAIN) {
      RETURN_IF_ERROR(Wait(POLLOUT));
    } else if (errno != EINTR) {
      return SystemError(errno);
    }
    // A peer that takes every byte at once must not carry this past its time.
    if (NetworkClock::now() > deadline_) return Error{ErrorCode::kCancelled, "no answer in time"};
  }
  return {};
}

Status TimedSocket::Receive(void* data, size_t size) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t count = ::recv(fd_.get(), at, size, 0);
    if (count > 0) {
      at += count;
      size -= static_cast<size_t>(count);
    } else if (count == 0) {
      return Error{ErrorCode::kIo, "closed by the other end"};
    } else if (errno == EAGAIN) {
      RETURN_IF_ERROR(Wait(POLLIN));
    } else if (errno != EINTR) {
      return SystemError(errno);
    }
    if (NetworkClock::now() > deadline_) return Error{ErrorCode::kCancelled, "no answer in time"};
  }
  return {};
}

Result<TimedSocket::Segments> TimedSocket::CountSegments() const {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (::getsockopt(fd_.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return SystemError(errno);
  return Segments{info.tcpi_segs_out, info.tcpi_total_retrans};
}

}  // namespace lockstep::agent
