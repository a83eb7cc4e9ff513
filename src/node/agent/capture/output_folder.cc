#include "node/agent/capture/output_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/ascii.h"
#include "node/agent/capture/beneath.h"
#include "node/agent/capture/process_view.h"
#include "node/agent/capture/random_name.h"

namespace lockstep::agent {
namespace {

struct SplitPath {
  std::string parent;  // Without slashes at its ends; empty: the root.
  std::string leaf;
};

SplitPath Split(const std::string& path) {
  const size_t slash = path.rfind('/');
  return {slash == 0 ? "" : path.substr(1, slash - 1), path.substr(slash + 1)};
}

Error At(ErrorCode code, std::string message, const std::string& path) {
  return Error{.code = code, .message = std::move(message), .file = path};
}

std::string Why(int error) { return std::strerror(error); }

std::string WhyNoFolder(int error) {
  return error == ELOOP || error == ENOTDIR ? "a symbolic link is on the way, or something else that is not a folder"
                                            : Why(error);
}

/// Absolute, no "..", no byte that Kineto's parser cuts at, no ".json" (the pid would be put into the folder's name).
bool IsSafePath(const std::string& path) {
  if (path.size() < 2 || path.size() > 512 || path.front() != '/') return false;
  for (const char c : path) {
    const bool plain = IsAlphanumeric(c);
    if (!plain && (c == '\0' || std::strchr("/._-+,@:", c) == nullptr)) return false;
  }
  return path.find("..") == std::string::npos && path.find(".json") == std::string::npos &&
         path.find("//") == std::string::npos && (path + "/").find("/./") == std::string::npos;
}

UniqueFd OpenRoot(const control::Process& process, bool other_view) {
  const std::string root = other_view ? fmt::format("/proc/{}/root", process.pid) : "/";
  return UniqueFd(open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

UniqueFd OpenFolderBelow(int root, const std::string& relative) {
  if (relative.empty()) return UniqueFd(openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  return OpenBeneath(root, relative, O_PATH | O_DIRECTORY);
}

// The parent folder of all captures. It must be ours, because its owner can replace everything below it.
UniqueFd OpenBase(int parent, const std::string& leaf, std::string* problem) {
  const mode_t mode = geteuid() == 0 ? 0711 : 0700;  // Other users pass through root's; no one lists it.
  const bool made = mkdirat(parent, leaf.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) {
    *problem = Why(errno);
    return UniqueFd();
  }
  UniqueFd base = OpenBeneath(parent, leaf, O_RDONLY | O_DIRECTORY);
  struct stat entry;
  if (!base.valid() || fstat(base.get(), &entry) != 0) {
    *problem = errno == ELOOP || errno == ENOTDIR ? "is not a folder" : Why(errno);
    return UniqueFd();
  }
  if (entry.st_uid != geteuid()) {
    *problem = fmt::format("belongs to uid {}", entry.st_uid);
    return UniqueFd();
  }
  if ((entry.st_mode & 07777) != mode && fchmod(base.get(), mode) != 0) {
    *problem = Why(errno);
    return UniqueFd();
  }
  return base;
}

// A folder that is not ours to trust: we act with the user's rights there, so only others' rights over it matter.
Status CheckForeignParent(int parent, uint32_t uid, const std::string& path) {
  struct stat entry;
  if (fstat(parent, &entry) != 0) return At(ErrorCode::kIo, Why(errno), path);
  const bool trusted = entry.st_uid == 0 || entry.st_uid == uid || entry.st_uid == geteuid();
  const bool open_to_all = (entry.st_mode & S_IWOTH) != 0 && (entry.st_mode & S_ISVTX) == 0;
  if (trusted && !open_to_all) return {};
  return At(ErrorCode::kFailedPrecondition,
            open_to_all ? "anyone can swap folders here: it is writable by all and has no sticky bit"
                        : fmt::format("belongs to uid {}, neither to root nor to the process's user", entry.st_uid),
            path);
}

uint32_t GroupOf(const control::Process& process) {
  struct stat entry;
  if (process.pid > 0 && stat(fmt::format("/proc/{}", process.pid).c_str(), &entry) == 0 &&
      entry.st_uid == process.uid) {
    return entry.st_gid;
  }
  return process.uid;  // A private group by the usual scheme; only rights that are missing come of a wrong one.
}

}  // namespace

Result<OutputBase> OutputBaseOf(const std::optional<std::string>& ondemand_trace_dir, const std::string& torch_version,
                                const std::string& base_option) {
  // The shared name is root's: another daemon that took it would stand in root's way.
  const std::string own = geteuid() == 0 ? "/tmp/lockstep" : fmt::format("/tmp/lockstep-{}", geteuid());
  const std::string base = base_option == "/tmp/lockstep" ? own : base_option;
  const auto release = TorchRelease(torch_version);
  const bool may_restrict = !release || *release >= std::pair(2, 14);
  if (may_restrict && ondemand_trace_dir) {
    std::string path = *ondemand_trace_dir;
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    if (path != "/tmp") {
      if (!IsSafePath(path)) {
        return At(
            ErrorCode::kFailedPrecondition,
            "the process's KINETO_ONDEMAND_TRACE_DIR is not an absolute path of letters, digits and ._-+,@:", path);
      }
      return OutputBase{.path = path, .given = true};
    }
  }
  const bool below_tmp = base.rfind("/tmp/", 0) == 0;
  if (!below_tmp && may_restrict) {  // Every PyTorch takes /tmp, the newest takes nothing else.
    return OutputBase{.path = own};
  }
  if (!IsSafePath(base))
    return At(ErrorCode::kInvalidArgument, "is not a folder that Kineto can be told to write to", base);
  return OutputBase{.path = base};
}

Result<OutputFolder::Made> OutputFolder::Make(const control::Process& process, const std::string& capture_id,
                                              const std::string& base_option) {
  if (geteuid() != 0 && geteuid() != process.uid) {
    return At(
        ErrorCode::kPermissionDenied,
        fmt::format("the daemon runs as uid {} and can make no folder for uid {}: run it as root to trace several "
                    "users' processes",
                    geteuid(), process.uid),
        "");
  }
  ASSIGN_OR_RETURN(const OutputBase base, OutputBaseOf(EnvironmentOf(process.pid, "KINETO_ONDEMAND_TRACE_DIR"),
                                                       process.torch_version, base_option));
  const bool other_view = HasOtherFileView(process.pid);
  const UniqueFd root = OpenRoot(process, other_view);
  if (!root.valid() || (other_view && HasEnded(process).value_or(true))) {
    return At(ErrorCode::kIo, "the process's mount namespace cannot be entered: " + Why(errno), "");
  }
  Made made;
  made.folder.reset(new OutputFolder());
  OutputFolder& folder = *made.folder;
  folder.uid_ = process.uid;
  folder.gid_ = GroupOf(process);
  std::string leaf = capture_id + "-" + RandomName(12);
  UniqueFd parent;
  bool ours = false;
  std::string parent_path = base.path;
  if (!base.given) {
    const SplitPath split = Split(base.path);
    parent = OpenFolderBelow(root.get(), split.parent);
    if (!parent.valid()) {
      return At(ErrorCode::kFailedPrecondition, "cannot be used: " + WhyNoFolder(errno), "/" + split.parent);
    }
    UniqueFd own = OpenBase(parent.get(), split.leaf, &made.problem);
    if (own.valid()) {
      parent = std::move(own);
      ours = true;
    } else {
      made.problem = fmt::format("{} {}: traces are written beside it", base.path, made.problem);
      parent_path = "/" + split.parent;
      leaf = split.leaf + "-" + leaf;
    }
  } else {
    parent = OpenFolderBelow(root.get(), base.path.substr(1));
    if (!parent.valid()) {
      return At(ErrorCode::kFailedPrecondition,
                "the process's KINETO_ONDEMAND_TRACE_DIR cannot be used: " + WhyNoFolder(errno), base.path);
    }
  }
  folder.path_ = (parent_path == "/" ? "" : parent_path) + "/" + leaf;
  int error = 0;
  if (ours) {
    if (mkdirat(parent.get(), leaf.c_str(), 0700) != 0) error = errno;
  } else {
    RETURN_IF_ERROR(CheckForeignParent(parent.get(), folder.uid_, parent_path));
    const bool had = AsUser(folder.uid_, folder.gid_, [&] {
      if (mkdirat(parent.get(), leaf.c_str(), 0700) != 0) error = errno;
    });
    if (!had) error = EPERM;
  }
  if (error != 0) return At(ErrorCode::kIo, "cannot be made: " + Why(error), folder.path_);
  UniqueFd opened = OpenBeneath(parent.get(), leaf, O_RDONLY | O_DIRECTORY);
  struct stat entry;
  if (!opened.valid() || fstat(opened.get(), &entry) != 0) {
    return At(ErrorCode::kIo, "cannot be opened: " + Why(errno), folder.path_);
  }
  if (ours && entry.st_uid == geteuid() && geteuid() != folder.uid_) {
    if (fchown(opened.get(), folder.uid_, static_cast<gid_t>(-1)) != 0) {
      return At(ErrorCode::kIo, "cannot be given to its user: " + Why(errno), folder.path_);
    }
  } else if (entry.st_uid != folder.uid_) {
    return At(ErrorCode::kFailedPrecondition, "was replaced while it was being made", folder.path_);
  }
  if (other_view) {
    folder.held_parent_ = std::move(parent);
    folder.held_folder_ = std::move(opened);
  }
  return made;
}

Result<std::shared_ptr<OutputFolder>> OutputFolder::Reopen(const control::Process& process, const std::string& path,
                                                           bool foreign) {
  if (!IsSafePath(path)) return At(ErrorCode::kPermissionDenied, "is not a folder of a trace", path);
  std::shared_ptr<OutputFolder> folder(new OutputFolder());
  folder->path_ = path;
  folder->foreign_ = foreign;
  folder->uid_ = process.uid;
  folder->gid_ = GroupOf(process);
  const bool alive = !HasEnded(process).value_or(true);
  if (alive && HasOtherFileView(process.pid)) {
    const UniqueFd root = OpenRoot(process, true);
    if (!root.valid() || HasEnded(process).value_or(true))
      return At(ErrorCode::kNotFound, "its process has ended", path);
    const SplitPath split = Split(path);
    folder->held_parent_ = OpenFolderBelow(root.get(), split.parent);
    if (folder->held_parent_.valid()) {
      folder->held_folder_ = OpenBeneath(folder->held_parent_.get(), split.leaf, O_RDONLY | O_DIRECTORY);
    }
    if (!folder->held_folder_.valid()) {
      folder->held_parent_ = UniqueFd();
      return At(ErrorCode::kNotFound, Why(errno), path);
    }
  }
  const UniqueFd opened = folder->OpenFolder();
  if (!opened.valid()) {
    return At(errno == EACCES ? ErrorCode::kPermissionDenied : ErrorCode::kNotFound, Why(errno), path);
  }
  return folder;
}

Result<std::shared_ptr<OutputFolder>> OutputFolder::Foreign(const control::Process& process, const std::string& path) {
  if (!IsSafePath(path)) {
    return At(ErrorCode::kInvalidArgument, "is not an absolute path of letters, digits and ._-+,@:, without \"..\"",
              path);
  }
  const auto release = TorchRelease(process.torch_version);
  if (release && *release >= std::pair(2, 14) && (path + "/").rfind("/tmp/", 0) != 0) {
    std::string allowed = EnvironmentOf(process.pid, "KINETO_ONDEMAND_TRACE_DIR").value_or("");
    while (!allowed.empty() && allowed.back() == '/') allowed.pop_back();
    if (allowed.empty() || (path + "/").rfind(allowed + "/", 0) != 0) {
      return At(
          ErrorCode::kFailedPrecondition,
          "PyTorch 2.14 and later writes only below /tmp, or below the KINETO_ONDEMAND_TRACE_DIR that the job was "
          "started with",
          path);
    }
  }
  auto folder = Reopen(process, path, true);
  if (!folder) {
    return At(ErrorCode::kFailedPrecondition,
              "is not a folder in the process's view of the file system, or a symbolic link is on the way: " +
                  folder.error().message,
              path);
  }
  return folder;
}

UniqueFd OutputFolder::OpenParent() const {
  if (held_parent_.valid()) return UniqueFd(openat(held_parent_.get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  const UniqueFd root(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  return OpenFolderBelow(root.get(), Split(path_).parent);
}

UniqueFd OutputFolder::OpenFolder() const {
  UniqueFd opened;
  if (held_folder_.valid()) {
    opened = UniqueFd(openat(held_folder_.get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  } else {
    const UniqueFd root(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    opened = OpenFolderBelow(root.get(), path_.substr(1));
  }
  struct stat entry;
  if (!opened.valid() || fstat(opened.get(), &entry) != 0) return UniqueFd();
  if (entry.st_nlink == 0) {  // Removed, and held open by us alone.
    errno = ENOENT;
    return UniqueFd();
  }
  if (!foreign_ && entry.st_uid != uid_) {
    errno = EACCES;
    return UniqueFd();
  }
  return opened;
}

FileObservation OutputFolder::Observe(const std::string& name) const {
  FileObservation seen;
  const UniqueFd folder = OpenFolder();
  if (!folder.valid()) {
    seen.kind = FileObservation::Kind::kNoFolder;
    return seen;
  }
  const auto look = [&] {
    struct stat entry;
    if (fstatat(folder.get(), name.c_str(), &entry, AT_SYMLINK_NOFOLLOW) == 0) {
      const bool usable = S_ISREG(entry.st_mode) && entry.st_uid == uid_ && entry.st_nlink == 1;
      seen.kind = usable ? FileObservation::Kind::kFinished : FileObservation::Kind::kUnusable;
      seen.size_bytes = usable && entry.st_size > 0 ? static_cast<uint64_t>(entry.st_size) : 0;
      return;
    }
    if (errno == EACCES) return;
    if (fstatat(folder.get(), (name + ".tmp").c_str(), &entry, AT_SYMLINK_NOFOLLOW) != 0) return;
    seen.kind = FileObservation::Kind::kUnfinished;
    seen.size_bytes = entry.st_size > 0 ? static_cast<uint64_t>(entry.st_size) : 0;
    struct statvfs space;
    if (fstatvfs(folder.get(), &space) == 0) seen.free_bytes = uint64_t{space.f_bavail} * space.f_frsize;
  };
  errno = 0;
  look();
  // A network file system may grant root less than the user.
  if (seen.kind == FileObservation::Kind::kNone && errno == EACCES) AsUser(uid_, gid_, look);
  return seen;
}

void OutputFolder::RemoveUnfinished(const std::string& name) const {
  const UniqueFd folder = OpenFolder();
  if (foreign_ || !folder.valid()) return;
  AsUser(uid_, gid_, [&] { unlinkat(folder.get(), (name + ".tmp").c_str(), 0); });
}

Result<OpenTrace> OutputFolder::Open(const std::string& name) const {
  const UniqueFd folder = OpenFolder();
  if (!folder.valid()) return At(ErrorCode::kNotFound, "the trace's folder is gone: " + Why(errno), path_);
  OpenTrace trace;
  // O_NONBLOCK: a FIFO under that name must not hold us up.
  const auto attempt = [&] { trace.fd = OpenBeneath(folder.get(), name, O_RDONLY | O_NONBLOCK | O_NOCTTY); };
  attempt();
  if (!trace.fd.valid() && errno == EACCES) AsUser(uid_, gid_, attempt);
  if (!trace.fd.valid()) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound
                           : errno == ELOOP || errno == EACCES || errno == EXDEV || errno == ENXIO
                               ? ErrorCode::kPermissionDenied
                               : ErrorCode::kIo;
    return At(code, Why(errno), path_ + "/" + name);
  }
  struct stat entry;
  if (fstat(trace.fd.get(), &entry) != 0) return At(ErrorCode::kIo, Why(errno), path_ + "/" + name);
  if (!S_ISREG(entry.st_mode) || entry.st_uid != uid_ || entry.st_nlink != 1) {
    return At(ErrorCode::kPermissionDenied, "is not a regular file of the traced user with one name",
              path_ + "/" + name);
  }
  trace.size_bytes = static_cast<uint64_t>(entry.st_size);
  return trace;
}

void OutputFolder::Remove() {
  if (foreign_) return;
  const UniqueFd folder = OpenFolder();
  const UniqueFd parent = OpenParent();
  if (!folder.valid() || !parent.valid()) return;
  // With the user's rights: nothing goes that the user could not have removed.
  AsUser(uid_, gid_, [&] { RemoveContents(folder.get()); });
  const std::string leaf = Split(path_).leaf;
  const auto remove = [&] { unlinkat(parent.get(), leaf.c_str(), AT_REMOVEDIR); };
  struct stat entry;
  if (fstat(parent.get(), &entry) == 0 && entry.st_uid == geteuid()) {
    remove();
  } else {
    AsUser(uid_, gid_, remove);
  }
}

}  // namespace lockstep::agent
