#include "node/agent/capture/beneath.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <vector>

namespace lockstep::agent {
namespace {

UniqueFd OpenByWalking(int folder, std::string_view path, int flags) {
  UniqueFd here(openat(folder, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  while (here.valid()) {
    const size_t slash = path.find('/');
    const std::string part(path.substr(0, slash));
    if (part == ".." || part.empty()) {
      errno = part.empty() ? EINVAL : EXDEV;
      return UniqueFd();
    }
    const bool last = slash == std::string_view::npos;
    const int how = last ? flags : O_PATH | O_DIRECTORY;
    UniqueFd next(openat(here.get(), part.c_str(), how | O_NOFOLLOW | O_CLOEXEC));
    // O_PATH opens a link itself instead of failing.
    struct stat entry;
    if (next.valid() && (fstat(next.get(), &entry) != 0 || S_ISLNK(entry.st_mode))) {
      errno = ELOOP;
      return UniqueFd();
    }
    if (last) return next;
    here = std::move(next);
    path.remove_prefix(slash + 1);
  }
  return UniqueFd();
}

void RemoveLevel(int folder, int depth, int* budget) {
  const int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return;
  DIR* entries = fdopendir(copy);
  if (entries == nullptr) {
    close(copy);
    return;
  }
  struct stat top;
  const bool known = fstat(copy, &top) == 0;
  std::vector<std::string> names;
  while (const dirent* entry = readdir(entries)) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (--*budget < 0) break;
    names.emplace_back(name);
  }
  closedir(entries);
  for (const std::string& name : names) {
    if (unlinkat(folder, name.c_str(), 0) == 0 || (errno != EISDIR && errno != EPERM)) continue;
    if (unlinkat(folder, name.c_str(), AT_REMOVEDIR) == 0 || depth == 0) continue;
    const UniqueFd below = OpenBeneath(folder, name, O_RDONLY | O_DIRECTORY);
    struct stat entry;
    if (!below.valid() || !known || fstat(below.get(), &entry) != 0 || entry.st_dev != top.st_dev) continue;
    RemoveLevel(below.get(), depth - 1, budget);
    unlinkat(folder, name.c_str(), AT_REMOVEDIR);
  }
}

}  // namespace

UniqueFd OpenBeneath(int folder, const std::string& path, int flags) {
  open_how how = {};
  how.flags = static_cast<uint64_t>(flags) | O_CLOEXEC | O_NOFOLLOW;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  for (int attempt = 0; attempt < 8; ++attempt) {  // EAGAIN: something was renamed on the way.
    const long file = syscall(SYS_openat2, folder, path.c_str(), &how, sizeof(how));
    if (file >= 0) return UniqueFd(static_cast<int>(file));
    if (errno == ENOSYS || errno == EPERM) return OpenByWalking(folder, path, flags);
    if (errno != EAGAIN && errno != EINTR) break;
  }
  return UniqueFd();
}

void RemoveContents(int folder) {
  int budget = 10'000;
  RemoveLevel(folder, 4, &budget);
}

}  // namespace lockstep::agent
