#include "node/proc/proc_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/ascii.h"
#include "base/nanoseconds.h"
#include "base/small_file.h"
#include "base/unique_fd.h"
#include "node/proc/job_environment.h"

namespace lockstep::proc {
namespace {

constexpr size_t kMaxAncestors = 32;
constexpr size_t kMaxOpenFiles = 8192;
constexpr size_t kMaxEnvironmentBytes = size_t{1} << 20;
constexpr size_t kMaxArgumentBytes = size_t{64} << 10;
constexpr size_t kMaxMapsBytes = size_t{32} << 20;
constexpr size_t kMaxVersionFileBytes = size_t{4} << 10;
constexpr std::string_view kTorchLibrary = "/lib/libtorch_cpu.so";

/// Folder that holds torch/lib/libtorch_cpu.so's torch, from the text of maps, which is read by parts.
std::string FindTorchFolder(int maps_fd) {
  std::string rest;
  std::array<char, 65536> chunk;
  for (size_t total = 0; total < kMaxMapsBytes;) {
    const ssize_t size = ::read(maps_fd, chunk.data(), chunk.size());
    if (size <= 0) return {};
    total += static_cast<size_t>(size);
    rest.append(chunk.data(), static_cast<size_t>(size));
    for (size_t end; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1)) {
      const std::string_view line(rest.data(), end);
      const size_t slash = line.find('/');
      if (line.ends_with(kTorchLibrary) && slash != std::string_view::npos)
        return std::string(line.substr(slash, line.size() - slash - kTorchLibrary.size()));
    }
  }
  return {};
}

std::string UserName(uint32_t uid) {
  std::array<char, 4096> buffer;
  passwd entry = {};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return {};
  return found->pw_name;
}

}  // namespace

std::string PythonVersionOf(std::string_view path) {
  constexpr std::string_view kPython = "python";
  std::string_view name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0.
  if (!name.starts_with(kPython)) return {};
  name.remove_prefix(kPython.size());
  name = name.substr(0, name.find_first_not_of("0123456789."));
  return name.find('.') == std::string_view::npos ? std::string() : std::string(name);
}

std::string ParseTorchVersion(std::string_view text) {
  // At the beginning of a line: the file names it in a list of its exports first.
  constexpr std::string_view kName = "__version__";
  size_t name = text.starts_with(kName) ? 0 : text.find("\n__version__");
  if (name == std::string_view::npos) return {};
  name += name == 0 && text.starts_with(kName) ? 0 : 1;
  const size_t quote = text.find_first_of("'\"\n", name);
  if (quote == std::string_view::npos || text[quote] == '\n') return {};
  const size_t end = text.find(text[quote], quote + 1);
  if (end == std::string_view::npos || end - quote > 64) return {};
  const std::string_view version = text.substr(quote + 1, end - quote - 1);
  const bool plain = std::all_of(version.begin(), version.end(), [](char c) {
    return IsAlphanumeric(c) || c == '.' || c == '+' || c == '-' || c == '_';
  });
  return plain ? std::string(version) : std::string();
}

std::string ProcReader::ReadFile(int32_t pid, const char* name, size_t limit_bytes) const {
  const UniqueFd fd(::open(fmt::format("{}/{}/{}", root_, pid, name).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return fd.valid() ? ReadSome(fd.get(), limit_bytes).value_or("") : std::string();
}

std::optional<ProcStat> ProcReader::ReadStat(int32_t pid) const { return ParseProcStat(ReadFile(pid, "stat", 4096)); }

bool ProcReader::IsAlive(int32_t pid, uint64_t start_ticks) const { return StartOf(pid) == start_ticks; }

std::optional<uint64_t> ProcReader::StartOf(int32_t pid) const {
  const auto stat = ReadStat(pid);
  if (!stat || stat->state == 'Z' || stat->state == 'X') return std::nullopt;
  return stat->start_ticks;
}

std::optional<ProcessDetails> ProcReader::ReadBriefly(int32_t pid, int64_t seen_boottime_ns) const {
  const auto stat = ReadStat(pid);
  if (!stat) return std::nullopt;
  const int64_t ticks_per_s = ::sysconf(_SC_CLK_TCK);
  // Whole ticks are rounded down, so a process that was there never seems to start later.
  if (seen_boottime_ns > 0 && static_cast<int64_t>(stat->start_ticks) / ticks_per_s > seen_boottime_ns / kSecondNs + 1)
    return std::nullopt;
  ProcessDetails details;
  details.start_ticks = stat->start_ticks;
  for (int32_t parent = stat->parent_pid; parent > 1 && details.ancestors.size() < kMaxAncestors;) {
    details.ancestors.push_back(parent);
    const auto above = ReadStat(parent);
    parent = above ? above->parent_pid : 0;
  }
  return details;
}

std::optional<ProcessDetails> ProcReader::Read(int32_t pid, int64_t seen_boottime_ns) const {
  auto details = ReadWithoutUser(pid, seen_boottime_ns);
  struct stat status = {};
  if (!details || ::stat(fmt::format("{}/{}", root_, pid).c_str(), &status) != 0) return details;
  details->user = UserName(status.st_uid);
  if (!IsAlive(pid, details->start_ticks)) return std::nullopt;
  return details;
}

std::optional<ProcessDetails> ProcReader::ReadWithoutUser(int32_t pid, int64_t seen_boottime_ns) const {
  auto details = ReadBriefly(pid, seen_boottime_ns);
  if (!details) return std::nullopt;
  const std::string arguments = ReadFile(pid, "cmdline", kMaxArgumentBytes);
  details->command = CommandText(arguments);
  details->launcher = IsLauncherCommand(arguments);
  if (!FindPodUid(ReadFile(pid, "cgroup", kMaxArgumentBytes)).empty())
    details->job_kind = control::JobKind::kKubernetes;
  const std::string environment = ReadFile(pid, "environ", kMaxEnvironmentBytes);
  ReadJobEnvironment(environment, &*details);
  details->settings = ReadSettings(environment);
  details->python_version = FindPythonVersion(pid);
  details->torch_version = FindTorchVersion(pid);
  details = Refresh(pid, *details);
  // Whatever was read is only its own when it is still the same process.
  if (details && !IsAlive(pid, details->start_ticks)) return std::nullopt;
  return details;
}

std::optional<ProcessDetails> ProcReader::Refresh(int32_t pid, const ProcessDetails& known) const {
  if (!IsAlive(pid, known.start_ticks)) return std::nullopt;
  ProcessDetails details = known;
  details.device = FindDevice(pid);
  details.helper = ReadFile(pid, "comm", 64).starts_with("pt_data_worker") ||
                   details.command.find("_inductor/compile_worker") != std::string::npos;
  return details;
}

std::string ProcReader::FindDevice(int32_t pid) const {
  const std::string folder = fmt::format("{}/{}/fd", root_, pid);
  const std::unique_ptr<DIR, int (*)(DIR*)> files(::opendir(folder.c_str()), ::closedir);
  if (files == nullptr) return {};
  std::string device = "cpu";
  size_t count = 0;
  while (const dirent* file = ::readdir(files.get())) {
    if (++count > kMaxOpenFiles) break;
    char target[64] = {};
    if (::readlinkat(::dirfd(files.get()), file->d_name, target, sizeof(target) - 1) <= 0) continue;
    const std::string_view path = target;
    // nvidiactl alone is what a monitor opens, too.
    if (path.starts_with("/dev/nvidia") && path.size() > 11 && IsDigit(path[11])) return "cuda";
    if (path == "/dev/kfd") return "rocm";
    if (path.starts_with("/dev/dri/renderD")) device = "xpu";  // ROCm opens these too: go on.
  }
  return device;
}

std::string ProcReader::FindPythonVersion(int32_t pid) const {
  char target[512] = {};
  const std::string link = fmt::format("{}/{}/exe", root_, pid);
  if (::readlink(link.c_str(), target, sizeof(target) - 1) <= 0) return {};
  return PythonVersionOf(target);
}

std::string ProcReader::FindTorchVersion(int32_t pid) const {
  const UniqueFd maps(::open(fmt::format("{}/{}/maps", root_, pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!maps.valid()) return {};
  const std::string folder = FindTorchFolder(maps.get());
  if (folder.empty()) return {};
  const UniqueFd root(::open(fmt::format("{}/{}/root", root_, pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return {};
  // Opened in the process's own view of files, and never outside of it. Only a short regular file is read, because the
  // job may have put anything there.
  open_how how = {};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const std::string path = folder + "/version.py";
  const UniqueFd file(static_cast<int>(::syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof(how))));
  struct stat status = {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return ParseTorchVersion(ReadSome(file.get(), kMaxVersionFileBytes).value_or(""));
}

}  // namespace lockstep::proc
