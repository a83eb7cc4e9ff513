#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "node/agent/daemon/service.h"

namespace lockstep::agent {
namespace {

constexpr uid_t kUnmappedUid = 65534;  // Who root is seen as from within a user namespace without it.

Error FolderError(const std::string& path, const std::string& what) {
  const bool is_denied = errno == EACCES || errno == EPERM || errno == EROFS;
  return Error{is_denied ? ErrorCode::kPermissionDenied : ErrorCode::kIo,
               fmt::format("{}: {}", what, std::strerror(errno)), path};
}

}  // namespace

Status MakeOwnFolder(const std::string& path, uint32_t mode) {
  // Those above are made for this alone where they are not there, and left as they are otherwise.
  std::string above;
  for (const auto& part : std::filesystem::path(path).lexically_normal().parent_path()) {
    above = above.empty() || above == "/" ? above + part.string() : above + "/" + part.string();
    if (above == "/" || above.empty()) continue;
    if (::mkdir(above.c_str(), mode) != 0 && errno != EEXIST) return FolderError(above, "the folder cannot be made");
    // In a folder that all users may write, another user could have made it first.
    struct stat info = {};
    if (::lstat(above.c_str(), &info) != 0) return FolderError(above, "the folder cannot be examined");
    if (info.st_uid != 0 && info.st_uid != ::geteuid() && info.st_uid != kUnmappedUid) {
      return Error{ErrorCode::kPermissionDenied,
                   fmt::format("belongs to uid {}: lockstepd does not use folders below it", info.st_uid), above};
    }
  }
  if (::mkdir(path.c_str(), mode) == 0) {
    // The umask took some of it.
    if (::chmod(path.c_str(), mode) != 0) return FolderError(path, "the folder's mode cannot be set");
    return {};
  }
  if (errno != EEXIST) return FolderError(path, "the folder cannot be made");
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0) return FolderError(path, "the folder cannot be examined");
  if (!S_ISDIR(info.st_mode)) return Error{ErrorCode::kIo, "is not a folder", path};
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    return Error{ErrorCode::kPermissionDenied, fmt::format("belongs to uid {}, not to this daemon", info.st_uid), path};
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (info.st_mode & S_ISVTX) == 0) {
    return Error{ErrorCode::kPermissionDenied, "others can write there: chmod go-w", path};
  }
  return {};
}

}  // namespace lockstep::agent
