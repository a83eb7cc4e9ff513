#include "node/local/runtime_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/host_name.h"
#include "base/parent_folder.h"

namespace lockstep::local {
namespace {

constexpr const char* kRootFolder = "/run/lockstep";

const char* OwnVariable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

// Made one folder at a time; each that is ours alone to make must be ours, not a link, and closed to other writers.
Status MakeOwnFolder(const std::string& path, mode_t mode = 0700) {
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) {
    const bool refused = errno == EACCES || errno == EPERM || errno == EROFS;
    return Error{.code = refused ? ErrorCode::kPermissionDenied : ErrorCode::kIo,
                 .message = fmt::format("this folder cannot be made: {}", std::strerror(errno)),
                 .file = path};
  }
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() ||
      (info.st_mode & 022) != 0) {
    return Error{.code = ErrorCode::kPermissionDenied,
                 .message =
                     "can be written by others, and is not used; remove it, or set LOCKSTEP_SOCKET to a path in a "
                     "folder of your own",
                 .file = path};
  }
  return {};
}

bool IsOwnFolder(const char* path) {
  struct stat info = {};
  return ::stat(path, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() &&
         ::access(path, W_OK | X_OK) == 0;
}

}  // namespace

Result<std::string> MakeRuntimeFolder() {
  std::vector<std::string> folders;
  const uid_t uid = ::geteuid();
  if (const char* socket = OwnVariable("LOCKSTEP_SOCKET")) folders.push_back(ParentFolder(socket));
  // A variable that came along from another node names a folder that is not there.
  const char* session = OwnVariable("XDG_RUNTIME_DIR");
  if (uid == 0) {
    folders.emplace_back(kRootFolder);
  } else if (session != nullptr && IsOwnFolder(session)) {
    folders.push_back(fmt::format("{}/lockstep", session));
  }
  for (const std::string& folder : folders) {
    // Root's is also where a daemon for all users has its socket.
    if (MakeOwnFolder(folder, folder == kRootFolder ? 0755 : 0700)) return folder;
  }
  const std::string base = fmt::format("/tmp/lockstep-{}", uid);
  const std::string folder = fmt::format("{}/{}", base, HostName("localhost"));
  RETURN_IF_ERROR(MakeOwnFolder(base));
  RETURN_IF_ERROR(MakeOwnFolder(folder));
  return folder;
}

std::string OwnDaemonSocket(const std::string& runtime_folder) {
  const char* socket = OwnVariable("LOCKSTEP_SOCKET");
  return socket != nullptr && ParentFolder(socket) == runtime_folder ? socket : runtime_folder + "/lockstepd.sock";
}

}  // namespace lockstep::local
