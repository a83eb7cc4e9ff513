#include "node/agent/job_metrics/span_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <optional>
#include <string_view>

#include "base/text_scan.h"

namespace lockstep::agent {
namespace {

constexpr std::string_view kSuffix = ".spans";
constexpr int kMostDescriptors = 1 << 16;

using Identity = std::pair<uint64_t, uint64_t>;

std::optional<Identity> IdentityOf(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return Identity{info.st_dev, info.st_ino};
}

}  // namespace

std::unique_ptr<SpanFile> SpanFile::Find(int32_t pid, uint32_t uid, const std::string& root) {
  const std::string folder = fmt::format("{}/{}/fd", root, pid);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
  if (entries == nullptr) return nullptr;
  int looked_at = 0;
  while (const dirent* entry = ::readdir(entries.get())) {
    const auto number = WholeNumber<int>(entry->d_name);
    if (!number) continue;
    if (++looked_at > kMostDescriptors) break;
    const std::string path = fmt::format("{}/{}", folder, *number);
    char target[PATH_MAX];
    const ssize_t length = ::readlink(path.c_str(), target, sizeof(target));
    if (length <= 0 || !std::string_view(target, static_cast<size_t>(length)).ends_with(kSuffix)) continue;
    // Following this link opens what the process has open, and nothing else.
    UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat info = {};
    if (!file.valid() || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != uid) continue;
    auto follower = ingest::span_follow::SpanFollower::Open([fd = file.get()](uint64_t offset, char* to, size_t bytes) {
      if (offset > INT64_MAX) return size_t{0};
      const ssize_t got = ::pread(fd, to, bytes, static_cast<off_t>(offset));
      return got < 0 ? size_t{0} : static_cast<size_t>(got);
    });
    if (!follower) continue;
    return std::unique_ptr<SpanFile>(
        new SpanFile(std::move(file), *number, {info.st_dev, info.st_ino}, std::move(*follower)));
  }
  return nullptr;
}

bool SpanFile::IsOpen(int32_t pid, const std::string& root) const {
  return IdentityOf(fmt::format("{}/{}/fd/{}", root, pid, number_)) == identity_;
}

}  // namespace lockstep::agent
