#include "node/control/client/relay.h"

#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/nanoseconds.h"

namespace lockstep::control {
namespace {

constexpr size_t kWindow = 65536;

/// One direction: what was read and is not written yet.
class Flow {
 public:
  Flow(int from, int to) : from_(from), to_(to), window_(kWindow) {}

  bool wants_to_read() const { return !is_at_end_ && begin_ == end_; }
  bool wants_to_write() const { return begin_ < end_; }
  bool is_at_end() const { return is_at_end_; }
  bool is_broken() const { return is_broken_; }  ///< The other end no longer reads.
  int error() const { return error_; }

  /// One read; `from` is readable or at its end.
  void Read() {
    const ssize_t got = ::read(from_, window_.data(), window_.size());
    if (got > 0) {
      begin_ = 0;
      end_ = static_cast<size_t>(got);
    } else if (got == 0 || errno == ECONNRESET) {
      is_at_end_ = true;
    } else if (errno != EINTR && errno != EAGAIN) {
      error_ = errno;
    }
  }

  /// As much as goes without waiting; `to` is writable.
  void Write() {
    ssize_t sent = ::send(to_, window_.data() + begin_, end_ - begin_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == ENOTSOCK) {
      // A writable pipe takes this much at once, whether it is blocking or not.
      sent = ::write(to_, window_.data() + begin_, std::min<size_t>(end_ - begin_, PIPE_BUF));
    }
    if (sent >= 0) {
      begin_ += static_cast<size_t>(sent);
    } else if (errno == EPIPE || errno == ECONNRESET) {
      is_broken_ = true;
    } else if (errno != EINTR && errno != EAGAIN) {
      error_ = errno;
    }
  }

 private:
  const int from_;
  const int to_;
  std::vector<char> window_;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool is_at_end_ = false;
  bool is_broken_ = false;
  int error_ = 0;
};

}  // namespace

Status Relay(int input, int output, int socket, int64_t linger_ns) {
  Flow up(input, socket);
  Flow down(socket, output);
  bool is_passed_on = false;
  bool has_hung_up = false;  // The output, a socket, and both of its directions.
  for (;;) {
    if (up.is_at_end() && !up.wants_to_write() && !is_passed_on) {
      ::shutdown(socket, SHUT_WR);
      is_passed_on = true;
    }
    if (down.is_at_end() && !down.wants_to_write()) return {};
    if (down.is_broken() || (has_hung_up && is_passed_on)) return {};
    // The daemon takes no more, but may have answered: read that to its end.
    const bool ups = !up.is_broken();
    // A descriptor of -1 is passed over. The output is always watched: for room, or for its reader's end (events 0).
    std::array<pollfd, 4> waiting = {
        pollfd{ups && up.wants_to_read() ? input : -1, POLLIN, 0},
        pollfd{ups && up.wants_to_write() ? socket : -1, POLLOUT, 0},
        pollfd{down.wants_to_read() ? socket : -1, POLLIN, 0},
        pollfd{has_hung_up ? -1 : output, static_cast<short>(down.wants_to_write() ? POLLOUT : 0), 0},
    };
    const int64_t limit_ms = std::clamp<int64_t>(linger_ns / kMillisecondNs, 0, INT_MAX);
    const int ready = ::poll(waiting.data(), waiting.size(), is_passed_on ? static_cast<int>(limit_ms) : -1);
    if (ready == 0) return {};
    if (ready < 0 && errno != EINTR) return Error{ErrorCode::kIo, std::strerror(errno)};
    if (ready < 0) continue;
    if (waiting[0].revents != 0) up.Read();
    if (waiting[1].revents != 0) up.Write();
    if (waiting[2].revents != 0) down.Read();
    if (waiting[3].revents != 0) {
      if (down.wants_to_write()) {
        down.Write();
      } else if ((waiting[3].revents & (POLLERR | POLLNVAL)) != 0) {
        return {};  // Its reader has gone, and nothing is left to be written.
      } else if ((waiting[3].revents & POLLHUP) != 0) {
        has_hung_up = true;
      }
    }
    for (const Flow* flow : {&up, &down}) {
      if (flow->error() != 0) {
        return Error{ErrorCode::kIo, fmt::format("the bytes go no further: {}", std::strerror(flow->error()))};
      }
    }
  }
}

Result<UniqueFd> ConnectUnix(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const size_t size = path.size();
  if (size == 0 || size >= sizeof(address.sun_path)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the socket's path '{}' is empty or longer than the system allows", path)};
  }
  std::memcpy(address.sun_path, path.data(), size);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid() || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const int why = errno;
    if (why == EACCES || why == EPERM) {
      return Error{ErrorCode::kPermissionDenied, fmt::format("{} may not be opened by you", path)};
    }
    if (why == ENOENT || why == ECONNREFUSED || why == ENOTDIR || why == ENOTSOCK) {
      return Error{ErrorCode::kNotFound, fmt::format("no lockstepd answers at {} ({}); start it with 'systemctl start "
                                                     "lockstepd', or the job with 'lockstep run --with-daemon'",
                                                     path, std::strerror(why))};
    }
    return Error{ErrorCode::kIo, fmt::format("{} cannot be connected to: {}", path, std::strerror(why))};
  }
  return fd;
}

}  // namespace lockstep::control
