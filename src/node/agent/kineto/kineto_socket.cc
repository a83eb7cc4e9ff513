#include "node/agent/kineto/kineto_socket.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "base/command_name.h"

namespace lockstep::agent {
namespace {

/// Enough for some thousand waiting requests and replies; the kernel's own limit on waiting datagrams is a count.
constexpr int kBufferBytes = 4 << 20;
constexpr size_t kMaxSweptFiles = 10'000;

Error SystemError(std::string_view doing) {
  return Error{.code = ErrorCode::kIo, .message = fmt::format("{}: {}", doing, std::strerror(errno))};
}

Result<UniqueFd> OpenSocket() {
  UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return SystemError("cannot make a Unix socket");
  const int on = 1;
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0)
    return SystemError("cannot ask for senders' credentials");
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) != 0)
    return SystemError("cannot ask for datagrams' times");
  // Without the privilege the plain ones are cut to the system's limit, which is well enough.
  for (const auto& [force, plain] : {std::pair(SO_RCVBUFFORCE, SO_RCVBUF), std::pair(SO_SNDBUFFORCE, SO_SNDBUF)}) {
    if (::setsockopt(fd.get(), SOL_SOCKET, force, &kBufferBytes, sizeof(kBufferBytes)) != 0)
      ::setsockopt(fd.get(), SOL_SOCKET, plain, &kBufferBytes, sizeof(kBufferBytes));
  }
  return fd;
}

/// Pid and name of a process that has the socket with this inode open, as far as this one may look; else empty.
std::string FindHolder(const std::string& inode) {
  const std::string wanted = fmt::format("socket:[{}]", inode);
  const std::unique_ptr<DIR, int (*)(DIR*)> processes(::opendir("/proc"), ::closedir);
  if (processes == nullptr) return {};
  while (const dirent* process = ::readdir(processes.get())) {
    if (process->d_name[0] < '1' || process->d_name[0] > '9') continue;
    const std::string folder = fmt::format("/proc/{}/fd", process->d_name);
    const std::unique_ptr<DIR, int (*)(DIR*)> files(::opendir(folder.c_str()), ::closedir);
    if (files == nullptr) continue;
    while (const dirent* file = ::readdir(files.get())) {
      char target[64] = {};
      if (::readlinkat(::dirfd(files.get()), file->d_name, target, sizeof(target) - 1) < 0 || wanted != target)
        continue;
      return fmt::format("process {} ({})", process->d_name, CommandName(std::atoi(process->d_name)));
    }
  }
  return {};
}

/// The process whose address /proc/net/unix shows like this.
std::string DescribeHolder(const std::string& shown) {
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    std::istringstream words(line);
    std::string word;
    std::string inode;
    for (int i = 0; i < 7 && words >> word; ++i) inode = word;
    if (!(words >> word) || word != shown) continue;
    const std::string holder = FindHolder(inode);
    if (!holder.empty()) return holder;
  }
  return "another process, perhaps another lockstepd or a dynolog,";
}

Error Taken(const std::string& label, const std::string& shown) {
  return Error{.code = ErrorCode::kFailedPrecondition,
               .message = fmt::format("{} already uses Kineto's socket {}; stop it, or give this daemon another name",
                                      DescribeHolder(shown), label)};
}

void RemoveDeadClientFiles(const std::string& directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> files(::opendir(directory.c_str()), ::closedir);
  if (files == nullptr) return;
  size_t count = 0;
  while (const dirent* file = ::readdir(files.get())) {
    const std::string_view name = file->d_name;
    if (!name.starts_with(kClientPrefix) || ++count > kMaxSweptFiles) continue;
    const std::string path = fmt::format("{}/{}", directory, name);
    if (path.size() < sizeof(sockaddr_un::sun_path) && IsDeadAddress(path))
      ::unlinkat(::dirfd(files.get()), file->d_name, 0);
  }
}

/// chmod without following a link that another process may have put there meanwhile.
Status OpenToAll(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat status = {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0 || !S_ISSOCK(status.st_mode))
    return SystemError(fmt::format("cannot look at {}", path));
  if (::chmod(fmt::format("/proc/self/fd/{}", fd.get()).c_str(), 0666) != 0)
    return SystemError(fmt::format("cannot open {} to all users", path));
  return {};
}

}  // namespace

bool IsDeadAddress(std::string_view address_text) {
  sockaddr_un address;
  const socklen_t length = WriteAddress(address_text, &address);
  const UniqueFd probe(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 &&
         (errno == ECONNREFUSED || errno == ENOENT);
}

Result<KinetoSocket> BindAbstractSocket(const std::string& name) {
  if (name.empty() || name.size() > sizeof(sockaddr_un::sun_path) - 2 || name.find('\0') != std::string::npos)
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = fmt::format("'{}' cannot be a socket's name: 1 to 106 characters", name)};
  KinetoSocket socket;
  ASSIGN_OR_RETURN(socket.fd, OpenSocket());
  socket.label = "abstract:" + name;
  // The zero byte behind the name is part of it: clients send to that.
  std::string path(1, '\0');
  path += name;
  path += '\0';
  sockaddr_un address;
  const socklen_t length = WriteAddress(path, &address);
  if (::bind(socket.fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    if (errno == EADDRINUSE) return Taken(socket.label, "@" + name + "@");
    return SystemError(fmt::format("cannot bind {}", socket.label));
  }
  return socket;
}

Result<KinetoSocket> BindDirectorySocket(const std::string& directory, const std::string& name) {
  if (directory.empty() || directory.front() != '/' || directory.size() > kMaxDirectoryChars)
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = fmt::format("'{}': a socket directory is an absolute path of at most {} characters, as in "
                                        "KINETO_IPC_SOCKET_DIR; longer ones overflow in the processes",
                                        directory, kMaxDirectoryChars)};
  if (name.empty() || name.find('/') != std::string::npos || name.starts_with(kClientPrefix) || name.size() > 52)
    return Error{.code = ErrorCode::kInvalidArgument, .message = fmt::format("'{}' cannot be a socket's name", name)};
  struct stat status = {};
  if (::stat(directory.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    return Error{.code = ErrorCode::kNotFound,
                 .message = fmt::format("{} is not a directory; make it (mode 1777) before the jobs start", directory)};
  KinetoSocket socket;
  ASSIGN_OR_RETURN(socket.fd, OpenSocket());
  socket.directory = directory;
  // Clients check that this text begins with theirs: it is bound as it was given.
  socket.label = directory + "/" + name;
  if (::lstat(socket.label.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode))
      return Error{.code = ErrorCode::kFailedPrecondition,
                   .message = fmt::format("{} exists and is not a socket; remove it", socket.label)};
    if (!IsDeadAddress(socket.label)) return Taken(socket.label, socket.label);
    if (::unlink(socket.label.c_str()) != 0)
      return SystemError(fmt::format("cannot remove the unused socket {}", socket.label));
  }
  sockaddr_un address;
  const socklen_t length = WriteAddress(socket.label, &address);
  if (::bind(socket.fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    if (errno == EADDRINUSE) return Taken(socket.label, socket.label);
    return SystemError(fmt::format("cannot bind {}", socket.label));
  }
  RETURN_IF_ERROR(OpenToAll(socket.label));
  RemoveDeadClientFiles(directory);
  return socket;
}

MayAnswer CheckAddress(const KinetoSocket& socket, std::string_view address) {
  if (address.size() < 2) return MayAnswer::kNameless;
  const bool is_abstract = address.front() == '\0';
  if (socket.directory.empty()) return is_abstract ? MayAnswer::kYes : MayAnswer::kNameless;
  if (is_abstract) return MayAnswer::kNameless;
  // Exactly DIRECTORY/NAME: with a doubled slash, the client's own directory is another text than ours.
  if (!address.starts_with(socket.directory)) return MayAnswer::kForeignPath;
  const std::string_view rest = address.substr(socket.directory.size());
  if (rest.size() < 2 || rest.front() != '/' || rest.find('/', 1) != std::string_view::npos)
    return MayAnswer::kForeignPath;
  return MayAnswer::kYes;
}

std::string ReadAddress(const sockaddr_un& address, socklen_t length) {
  constexpr size_t kOffset = offsetof(sockaddr_un, sun_path);
  if (length <= kOffset || length > sizeof(address)) return {};
  const std::string_view path(address.sun_path, length - kOffset);
  if (path.front() == '\0') return std::string(path);
  return std::string(path.substr(0, path.find('\0')));
}

socklen_t WriteAddress(std::string_view text, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  const size_t size = std::min(text.size(), sizeof(address->sun_path));
  std::memcpy(address->sun_path, text.data(), size);
  const bool is_path = !text.empty() && text.front() != '\0' && size < sizeof(address->sun_path);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + size + (is_path ? 1 : 0));
}

void RemoveClientFile(const KinetoSocket& socket, std::string_view address) {
  if (socket.directory.empty() || CheckAddress(socket, address) != MayAnswer::kYes) return;
  const std::string name(address.substr(socket.directory.size() + 1));
  const std::string path(address);
  if (!name.starts_with(kClientPrefix) || !IsDeadAddress(path)) return;
  const UniqueFd folder(::open(socket.directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (folder.valid()) ::unlinkat(folder.get(), name.c_str(), 0);
}

}  // namespace lockstep::agent
