#include "base/timed_socket_io.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/nanoseconds.h"
#include "base/now.h"

namespace lockstep {

int WaitWithin(int fd, short events, int64_t until_ns, int stop_fd) {
  for (;;) {
    const int64_t left_ns = until_ns - SteadyNow();
    if (left_ns <= 0) return ETIME;
    std::array<pollfd, 2> fds = {{{fd, events, 0}, {stop_fd, POLLIN, 0}}};
    const int ready =
        ::poll(fds.data(), fds.size(), static_cast<int>(std::min<int64_t>(left_ns / kMillisecondNs + 1, 60'000)));
    if (ready < 0 && errno != EINTR) return errno;
    if (ready > 0 && fds[1].revents != 0) return ECANCELED;
    if (ready > 0 && fds[0].revents != 0) return 0;
  }
}

int ConnectWithin(int fd, const sockaddr* address, socklen_t size, int64_t until_ns, int stop_fd) {
  if (::connect(fd, address, size) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (const int error = WaitWithin(fd, POLLOUT, until_ns, stop_fd); error != 0) return error;
  int error = 0;
  socklen_t error_size = sizeof(error);
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_size) != 0 ? errno : error;
}

int SendWithin(int fd, std::string_view bytes, int64_t until_ns, int stop_fd) {
  while (!bytes.empty()) {
    // A peer that takes every byte at once must not carry this past its time.
    if (SteadyNow() > until_ns) return ETIME;
    const ssize_t count = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
    } else if (errno == EAGAIN) {
      if (const int error = WaitWithin(fd, POLLOUT, until_ns, stop_fd); error != 0) return error;
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

int ReceiveWithin(int fd, void* to, size_t size, size_t* received, int64_t until_ns, int stop_fd) {
  while (SteadyNow() <= until_ns) {
    const ssize_t count = ::recv(fd, to, size, 0);
    if (count >= 0) {
      *received = static_cast<size_t>(count);
      return 0;
    }
    if (errno == EAGAIN) {
      if (const int error = WaitWithin(fd, POLLIN, until_ns, stop_fd); error != 0) return error;
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return ETIME;
}

}  // namespace lockstep
