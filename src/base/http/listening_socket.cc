#include "base/http/listening_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace lockstep::http {
namespace {

constexpr int kSocketFlags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

std::string Reason(int error) { return std::generic_category().message(error); }

ErrorCode CodeOf(int error) {
  return error == EACCES || error == EPERM ? ErrorCode::kPermissionDenied : ErrorCode::kIo;
}

Result<socklen_t> ReadAddress(const std::string& address, uint16_t port, sockaddr_storage* storage) {
  auto* v4 = reinterpret_cast<sockaddr_in*>(storage);
  if (::inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    return static_cast<socklen_t>(sizeof(*v4));
  }
  *storage = {};
  auto* v6 = reinterpret_cast<sockaddr_in6*>(storage);
  if (::inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    return static_cast<socklen_t>(sizeof(*v6));
  }
  return Error{.code = ErrorCode::kInvalidArgument,
               .message = fmt::format("'{}' is not an IP address to listen on", address)};
}

sockaddr_un UnixAddress(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Error UnixError(const std::string& path, int error) {
  return {.code = CodeOf(error),
          .message = fmt::format("the socket {} cannot be listened on: {}", path, Reason(error))};
}

/// Removes a socket of ours without a listener.
Status RemoveStale(const std::string& path) {
  struct stat about = {};
  if (::lstat(path.c_str(), &about) != 0) {
    if (errno == ENOENT) return {};
    return UnixError(path, errno);
  }
  if (!S_ISSOCK(about.st_mode) || about.st_uid != ::geteuid()) {
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = fmt::format("{} is there already and is not a socket of this user; remove it, or choose "
                                        "another path",
                                        path)};
  }
  const UniqueFd probe(::socket(AF_UNIX, kSocketFlags, 0));
  if (!probe.valid()) return UnixError(path, errno);
  const sockaddr_un address = UnixAddress(path);
  // Not blocking: EAGAIN is a listener with a full queue.
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ||
      errno != ECONNREFUSED) {
    return Error{.code = ErrorCode::kIo,
                 .message = fmt::format("the socket {} is in use; stop what listens there, or choose another", path)};
  }
  if (::unlink(path.c_str()) != 0) return UnixError(path, errno);
  return {};
}

}  // namespace

Result<UniqueFd> ListenTcp(const std::string& address, uint16_t port) {
  sockaddr_storage storage = {};
  ASSIGN_OR_RETURN(const socklen_t bytes, ReadAddress(address, port, &storage));
  UniqueFd socket(::socket(storage.ss_family, kSocketFlags, 0));
  const int on = 1;
  bool is_well = socket.valid() && ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0;
  if (is_well && storage.ss_family == AF_INET6)
    is_well = ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) == 0;
  is_well = is_well && ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&storage), bytes) == 0;
  is_well = is_well && ::listen(socket.get(), SOMAXCONN) == 0;
  if (is_well) return socket;
  const int error = errno;
  if (error == EADDRINUSE) {
    return Error{.code = ErrorCode::kIo,
                 .message = fmt::format("port {} on {} is in use; stop what listens there (ss -ltnp 'sport = :{}' "
                                        "names it), or choose another",
                                        port, address, port)};
  }
  return Error{.code = CodeOf(error),
               .message = fmt::format("port {} on {} cannot be listened on: {}", port, address, Reason(error))};
}

Result<UnixListener> UnixListener::Open(const std::string& path) {
  if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path) || path.find('\0') != std::string::npos) {
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = fmt::format("the socket's path '{}' has {} bytes; at most {} are possible", path,
                                        path.size(), sizeof(sockaddr_un::sun_path) - 1)};
  }
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  // Held while the old file is looked at and the new one made, so that of two servers that start one wins. Where the
  // folder cannot be locked (a network's file system) they are on their own.
  const UniqueFd lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock.valid()) return UnixError(path, errno);
  while (::flock(lock.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  RETURN_IF_ERROR(RemoveStale(path));
  UniqueFd socket(::socket(AF_UNIX, kSocketFlags, 0));
  if (!socket.valid()) return UnixError(path, errno);
  const sockaddr_un address = UnixAddress(path);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return UnixError(path, errno);
  struct stat about = {};
  if (::lstat(path.c_str(), &about) != 0) return UnixError(path, errno);
  UnixListener listener(path, std::move(socket), about.st_dev, about.st_ino);  // Removes the file from here on.
  // Any user may connect: the peer's credentials decide what it may do.
  if (::chmod(path.c_str(), 0666) != 0 || ::listen(listener.socket_.get(), SOMAXCONN) != 0)
    return UnixError(path, errno);
  return listener;
}

UnixListener::UnixListener(UnixListener&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      socket_(std::move(other.socket_)),
      device_(other.device_),
      inode_(other.inode_) {}

UnixListener::~UnixListener() { RemoveFile(); }

void UnixListener::RemoveFile() {
  struct stat about = {};
  const std::string path = std::exchange(path_, {});
  if (path.empty() || ::lstat(path.c_str(), &about) != 0) return;
  if (about.st_dev == device_ && about.st_ino == inode_) ::unlink(path.c_str());
}

uint16_t PortOf(int fd) {
  sockaddr_storage storage = {};
  socklen_t bytes = sizeof(storage);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &bytes) != 0) return 0;
  if (storage.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
  if (storage.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
  return 0;
}

}  // namespace lockstep::http
