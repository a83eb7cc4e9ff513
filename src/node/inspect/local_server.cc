#include "node/inspect/local_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/letter_case.h"
#include "base/nanoseconds.h"
#include "base/text_scan.h"
#include "base/timed_socket_io.h"
#include "node/inspect/privilege.h"
#include "node/inspect/proc_files.h"

namespace lockstep::inspect {
namespace {

constexpr size_t kMaxAnswerBytes = size_t{256} << 20;

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
  if (ConnectWithin(socket.get(), address, size, deadline_ns) != 0) return {};
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
  if (SendWithin(socket, request, deadline_monotonic_ns) != 0) return false;
  std::array<char, 65536> chunk;
  for (size_t total = 0; total <= kMaxAnswerBytes;) {
    size_t size = 0;
    if (ReceiveWithin(socket, chunk.data(), chunk.size(), &size, deadline_monotonic_ns) != 0) return false;
    if (size == 0) return true;
    if (!take(std::string_view(chunk.data(), size))) return false;
    total += size;
  }
  return false;
}

std::optional<HttpAnswer> ParseHttpAnswer(std::string_view bytes) {
  const size_t end = bytes.find("\r\n\r\n");
  if (end == std::string_view::npos || !bytes.starts_with("HTTP/1.")) return std::nullopt;
  std::string_view head = bytes.substr(0, end);
  HttpAnswer answer;
  const auto status = LeadingNumber<decltype(answer.status)>(head.substr(std::min<size_t>(head.size(), 9), 3));
  if (head.size() < 12 || !status) return std::nullopt;
  answer.status = *status;
  answer.body = bytes.substr(end + 4);
  while (!head.empty()) {
    const std::string_view line = head.substr(0, head.find("\r\n"));
    head.remove_prefix(std::min(line.size() + 2, head.size()));
    if (!Lowered(line.substr(0, 15)).starts_with("content-length:")) continue;
    TextCursor value(line.substr(15));
    value.SkipBlanks();
    const auto length = value.Number<size_t>();
    if (!length || answer.body.size() < *length) return std::nullopt;
    answer.body.resize(*length);
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
