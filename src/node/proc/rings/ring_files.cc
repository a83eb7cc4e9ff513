#include "node/proc/rings/ring_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <string_view>
#include <utility>

#include "base/as_user.h"
#include "base/small_file.h"
#include "base/split.h"
#include "base/text_scan.h"
#include "ingest/nccl_ring/ring_pulse.h"
#include "node/proc/job_environment.h"

namespace lockstep::proc {
namespace {

constexpr size_t kMostEnvironmentBytes = size_t{1} << 20;
constexpr size_t kMostMapsBytes = size_t{16} << 20;
constexpr size_t kMostEntries = 1 << 16;
constexpr uint64_t kMostRingBytes = uint64_t{5} << 28;  // 1.25 GiB: the most operations that the plugin takes.
constexpr std::string_view kBegin = "lockstep-nccl.", kEnd = ".ring";

/// Numbers of a line "Name: a b c" of /proc/PID/status.
std::vector<int64_t> NumbersOf(std::string_view status, std::string_view name) {
  std::vector<int64_t> numbers;
  LineScanner lines(status);
  for (std::string_view line; lines.Next(&line);) {
    if (!line.starts_with(name)) continue;
    for (const std::string_view word : SplitAt(line.substr(name.size()))) {
      if (const auto number = WholeNumber(word)) numbers.push_back(*number);
    }
    break;
  }
  return numbers;
}

bool IsRingName(std::string_view name) { return name.starts_with(kBegin) && name.ends_with(kEnd); }

/// "...HOST.PID.ring", or "...HOST.PID.2.ring" of a process that had one before.
bool IsRingOf(std::string_view name, int32_t pid) {
  if (!IsRingName(name)) return false;
  name.remove_suffix(kEnd.size());
  const std::string end = fmt::format(".{}", pid);
  if (name.ends_with(end)) return true;
  const size_t dot = name.rfind('.');
  const bool is_number = dot != std::string_view::npos && name.size() - dot - 1 <= 2 &&
                         name.find_first_not_of("0123456789", dot + 1) == std::string_view::npos;
  return is_number && name.substr(0, dot).ends_with(end);
}

/// Is a file of that name among what a process has mapped? By name: where file systems lie upon each other, the numbers
/// in /proc are not those of stat.
bool IsMapped(std::string_view maps, std::string_view name) {
  const std::string end = fmt::format("/{}", name);
  for (size_t at = maps.find(end); at != std::string_view::npos; at = maps.find(end, at + 1)) {
    const std::string_view behind = maps.substr(at + end.size());
    if (behind.empty() || behind.front() == '\n' || behind.front() == ' ') return true;  // " (deleted)"
  }
  return false;
}

UniqueFd OpenFolder(int root, const std::string& folder) {
  open_how how = {};
  how.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  return UniqueFd(static_cast<int>(::syscall(SYS_openat2, root, folder.c_str(), &how, sizeof(how))));
}

std::vector<std::string> NamesIn(int folder) {
  std::vector<std::string> names;
  const int copy = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return names;
  DIR* const entries = ::fdopendir(copy);
  if (entries == nullptr) {
    ::close(copy);
    return names;
  }
  size_t seen = 0;
  for (const dirent* entry = ::readdir(entries); entry != nullptr && ++seen <= kMostEntries;
       entry = ::readdir(entries)) {
    if (IsRingName(entry->d_name)) names.emplace_back(entry->d_name);
  }
  ::closedir(entries);
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<RingFile> OpenIn(int folder, const std::string& name, uint32_t uid) {
  UniqueFd file(::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat about = {};
  if (!file.valid() || ::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode) || about.st_uid != uid ||
      about.st_size <= 0 || static_cast<uint64_t>(about.st_size) > kMostRingBytes) {
    return std::nullopt;
  }
  return RingFile(std::move(file), name, static_cast<uint64_t>(about.st_size));
}

/// Opens those of the folder's rings that are wanted, as the process's user.
std::vector<RingFile> OpenThose(const RingPlace& place, size_t limit,
                                const std::function<bool(std::string_view name)>& is_wanted) {
  std::vector<RingFile> files;
  // The process's root is opened with our own rights, which that may need; what lies in it is not.
  const UniqueFd root(::open(fmt::format("/proc/{}/root", place.pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return files;
  AsUser(place.uid, place.gid, [&] {
    const UniqueFd folder = OpenFolder(root.get(), place.folder);
    if (!folder.valid()) return;
    for (const std::string& name : NamesIn(folder.get())) {
      if (files.size() >= limit) break;
      if (!is_wanted(name)) continue;
      if (auto file = OpenIn(folder.get(), name, place.uid)) files.push_back(std::move(*file));
    }
  });
  return files;
}

}  // namespace

bool RingFile::ReadAt(uint64_t offset, std::span<char> into) const {
  while (!into.empty()) {
    const ssize_t got = ::pread(file_.get(), into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    offset += static_cast<uint64_t>(got);
    into = into.subspan(static_cast<size_t>(got));
  }
  return true;
}

std::optional<RingPlace> FindRingPlace(int32_t pid) {
  const std::string status = ReadSmallFile(fmt::format("/proc/{}/status", pid), 16384).value_or("");
  const std::vector<int64_t> uids = NumbersOf(status, "Uid:");  // Real, effective, ...
  const std::vector<int64_t> gids = NumbersOf(status, "Gid:");
  const std::vector<int64_t> pids = NumbersOf(status, "NSpid:");
  if (uids.size() < 2 || gids.size() < 2) return std::nullopt;
  RingPlace place;
  place.pid = pid;
  place.uid = static_cast<uint32_t>(uids[1]);
  place.gid = static_cast<uint32_t>(gids[1]);
  place.own_pid = pids.empty() ? pid : static_cast<int32_t>(pids.back());
  place.environment = ReadSmallFile(fmt::format("/proc/{}/environ", pid), kMostEnvironmentBytes).value_or("");
  if (place.environment.empty()) return std::nullopt;
  place.folder = EnvironmentValue(place.environment, "LOCKSTEP_NCCL_DIR");
  place.is_named =
      !place.folder.empty() ||
      EnvironmentValue(place.environment, "NCCL_PROFILER_PLUGIN").find("lockstep") != std::string_view::npos;
  if (place.folder.empty()) place.folder = "/dev/shm";
  return place;
}

std::optional<RingFile> OpenRing(const RingPlace& place) {
  constexpr size_t kMost = 100;  // As many as the plugin makes for one pid.
  const std::string maps = ReadSmallFile(fmt::format("/proc/{}/maps", place.pid), kMostMapsBytes).value_or("");
  std::optional<RingFile> newest;
  int64_t newest_unix_ns = INT64_MIN;
  const auto is_its_own = [&](std::string_view name) { return IsRingOf(name, place.own_pid) && IsMapped(maps, name); };
  for (RingFile& file : OpenThose(place, kMost, is_its_own)) {
    const auto pulse =
        ingest::ReadNcclRingPulse([&file](uint64_t offset, std::span<char> into) { return file.ReadAt(offset, into); });
    if (!pulse || pulse->pid != place.own_pid || pulse->opened_unix_ns <= newest_unix_ns) continue;
    newest_unix_ns = pulse->opened_unix_ns;
    newest = std::move(file);
  }
  return newest;
}

std::vector<RingFile> OpenRings(const RingPlace& place, size_t limit) {
  return OpenThose(place, limit, [](std::string_view) { return true; });
}

}  // namespace lockstep::proc
