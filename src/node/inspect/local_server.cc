#include "node/inspect/local_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/letter_case.h"
#include "base/nanoseconds.h"
#include "node/inspect/privilege.h"
#include "node/inspect/proc_files.h"

namespace lockstep::inspect {
namespace {

constexpr size_t kMaxAnswerBytes = size_t{256} << 20;

/// Waits until `socket` can be read or written; false: not within the time.
bool WaitFor(int socket, short events, int64_t deadline_ns) {
  while (true) {
    const int64_t left_ns = deadline_ns - MonotonicNs();
    if (left_ns <= 0) return false;
    pollfd waited = {.fd = socket, .events = events, .revents = 0};
    const int ready = ::poll(&waited, 1, static_cast<int>(std::min<int64_t>(left_ns / kMillisecondNs + 1, 1000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

UniqueFd ConnectLoopback(int family, uint16_t port, int64_t deadline_ns) {
  UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return {};
  sockaddr_in v4 = {};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 v6 = {};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  v6.sin6_addr = in6addr_loopback;
  const auto* address = family == AF_INET ? reinterpret_cast<sockaddr*>(&v4) : reinterpret_cast<sockaddr*>(&v6);
  const socklen_t size = family == AF_INET ? sizeof(v4) : sizeof(v6);
  if (::connect(socket.get(), address, size) == 0) return socket;
  if (errno != EINPROGRESS || !WaitFor(socket.get(), POLLOUT, deadline_ns)) return {};
  int error = 0;
  socklen_t error_size = sizeof(error);
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &error_size) != 0 || error != 0) return {};
  return socket;
}

}  // namespace

UniqueFd ConnectTo(pid_t pid, const std::string& path) {
  // Looked up in the process's own root, whose mounts may differ from ours; the name is appended to the folder's
  // descriptor since a Unix socket's address is short.
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos || !BecomeOwnerOf(pid)) return {};
  const UniqueFd root(::open(fmt::format("/proc/{}/root", pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return {};
  open_how how = {};
  how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const std::string folder = slash == 0 ? "/" : path.substr(0, slash);
  const UniqueFd place(static_cast<int>(::syscall(SYS_openat2, root.get(), folder.c_str(), &how, sizeof(how))));
  if (!place.valid()) return {};
  const std::string name = fmt::format("/proc/self/fd/{}/{}", place.get(), path.substr(slash + 1));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (name.size() >= sizeof(address.sun_path)) return {};
  std::memcpy(address.sun_path, name.c_str(), name.size() + 1);
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid() || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return {};
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid != pid) return {};
  return socket;
}

bool Exchange(int socket, std::string_view request, int64_t deadline_monotonic_ns,
              const std::function<bool(std::string_view)>& take) {
  while (!request.empty()) {
    if (!WaitFor(socket, POLLOUT, deadline_monotonic_ns)) return false;
    const ssize_t sent = ::send(socket, request.data(), request.size(), MSG_NOSIGNAL);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent <= 0) return false;
    request.remove_prefix(static_cast<size_t>(sent));
  }
  std::array<char, 65536> chunk;
  for (size_t total = 0; total <= kMaxAnswerBytes;) {
    if (!WaitFor(socket, POLLIN, deadline_monotonic_ns)) return false;
    const ssize_t size = ::recv(socket, chunk.data(), chunk.size(), 0);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (size == 0) return true;
    if (size < 0 || !take(std::string_view(chunk.data(), static_cast<size_t>(size)))) return false;
    total += static_cast<size_t>(size);
  }
  return false;
}

std::optional<HttpAnswer> ParseHttpAnswer(std::string_view bytes) {
  const size_t end = bytes.find("\r\n\r\n");
  if (end == std::string_view::npos || !bytes.starts_with("HTTP/1.")) return std::nullopt;
  std::string_view head = bytes.substr(0, end);
  HttpAnswer answer;
  if (head.size() < 12 || std::from_chars(head.data() + 9, head.data() + 12, answer.status).ec != std::errc())
    return std::nullopt;
  answer.body = bytes.substr(end + 4);
  while (!head.empty()) {
    const std::string_view line = head.substr(0, head.find("\r\n"));
    head.remove_prefix(std::min(line.size() + 2, head.size()));
    if (!Lowered(line.substr(0, 15)).starts_with("content-length:")) continue;
    std::string_view value = line.substr(15);
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
    size_t length = 0;
    if (std::from_chars(value.data(), value.data() + value.size(), length).ec != std::errc()) return std::nullopt;
    if (answer.body.size() < length) return std::nullopt;
    answer.body.resize(length);
  }
  return answer;
}

std::optional<HttpAnswer> PostTo(uint16_t port, std::string_view path, int64_t deadline_monotonic_ns) {
  for (const int family : {AF_INET, AF_INET6}) {
    const UniqueFd socket = ConnectLoopback(family, port, deadline_monotonic_ns);
    if (!socket.valid()) continue;
    const std::string request =
        fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", path);
    std::string bytes;
    const bool closed = Exchange(socket.get(), request, deadline_monotonic_ns, [&](std::string_view piece) {
      bytes += piece;
      return true;
    });
    // One that keeps the connection open has said all when the length that it told is there.
    if (auto answer = ParseHttpAnswer(bytes); answer && (closed || bytes.find("ontent-") != std::string::npos))
      return answer;
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace lockstep::inspect
