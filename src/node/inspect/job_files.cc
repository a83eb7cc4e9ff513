#include "node/inspect/job_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/small_file.h"
#include "base/split.h"
#include "base/timespec.h"
#include "base/unique_fd.h"
#include "base/utf8.h"
#include "node/inspect/privilege.h"
#include "node/inspect/proc_files.h"
#include "node/proc/job_environment.h"

namespace lockstep::inspect {
namespace {

std::string Variable(std::string_view environment, std::string_view name) {
  return std::string(proc::EnvironmentValue(environment, name));
}

constexpr size_t kMaxEnvironmentBytes = size_t{1} << 20;
constexpr size_t kMaxRecordBytes = size_t{128} << 20;
constexpr int64_t kPollNs = 20'000'000;

/// Opens a path as the process sees it, never out of its root.
UniqueFd OpenIn(pid_t pid, const std::string& path, uint64_t flags) {
  const UniqueFd root(::open(fmt::format("/proc/{}/root", pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return {};
  open_how how = {};
  how.flags = flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  return UniqueFd(static_cast<int>(::syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof(how))));
}

struct FileMark {
  int64_t modified_ns = -1;
  int64_t size = -1;
  bool operator==(const FileMark&) const = default;
};
FileMark MarkOf(pid_t pid, const std::string& path) {
  const UniqueFd file = OpenIn(pid, path, O_RDONLY);
  struct stat status = {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return {.modified_ns = Nanoseconds(status.st_mtim), .size = status.st_size};
}

/// Where versions of PyTorch put their dumps by default.
std::vector<std::string> DumpPaths(std::string_view environment, int32_t rank) {
  for (const char* name : {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}) {
    if (const std::string prefix = Variable(environment, name); !prefix.empty())
      return {fmt::format("{}{}", prefix, rank)};
  }
  std::string cache = Variable(environment, "XDG_CACHE_HOME");
  if (cache.empty()) cache = Variable(environment, "HOME") + "/.cache";
  return {fmt::format("{}/torch/comm_lib_trace_rank_{}", cache, rank),
          fmt::format("{}/torch/nccl_trace_rank_{}", cache, rank), fmt::format("/tmp/nccl_trace_rank_{}", rank)};
}

void Sleep(int64_t ns) {
  const timespec time = {.tv_sec = 0, .tv_nsec = ns};
  ::nanosleep(&time, nullptr);
}

}  // namespace

PipeDump AskPipe(pid_t pid, int32_t rank, int64_t deadline_monotonic_ns) {
  const std::string environment = ReadProcFile(pid, "environ", kMaxEnvironmentBytes).value_or("");
  const std::string prefix = Variable(environment, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE");
  if (prefix.empty()) return {};
  if (rank < 0) return {.problem = "it has a pipe for dumps, whose name ends with its rank, which is not known"};
  const std::string path = fmt::format("{}{}.pipe", prefix, rank);
  const UniqueFd pipe = OpenIn(pid, path, O_WRONLY);
  struct stat status = {};
  if (!pipe.valid() || ::fstat(pipe.get(), &status) != 0 || !S_ISFIFO(status.st_mode))
    return {.problem = fmt::format("no thread reads its pipe for dumps ({})", Printable(path))};
  const std::vector<std::string> files = DumpPaths(environment, rank);
  std::vector<FileMark> before;
  for (const std::string& file : files) before.push_back(MarkOf(pid, file));
  if (::write(pipe.get(), "1", 1) != 1) return {.problem = "its pipe for dumps is full"};
  std::vector<FileMark> last = before;
  while (MonotonicNs() < deadline_monotonic_ns) {
    Sleep(kPollNs);
    for (size_t i = 0; i < files.size(); ++i) {
      const FileMark now = MarkOf(pid, files[i]);
      const bool still = now == last[i];
      last[i] = now;
      // Written anew, and not being written any more.
      if (now == before[i] || !still || now.size <= 0) continue;
      const UniqueFd file = OpenIn(pid, files[i], O_RDONLY);
      return {.record = ReadSome(file.get(), kMaxRecordBytes).value_or(""), .problem = {}};
    }
  }
  return {.problem = fmt::format("no dump came at {} after a byte into its pipe", Printable(files[0]))};
}

std::string ReadTail(int fd, uint32_t uid, size_t limit_bytes) {
  struct stat status = {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != uid) return {};
  const auto size = static_cast<uint64_t>(std::max<off_t>(status.st_size, 0));
  const uint64_t from = size > limit_bytes ? size - limit_bytes : 0;
  std::string text(std::min<uint64_t>(size, limit_bytes), '\0');
  const ssize_t got = ::pread(fd, text.data(), text.size(), static_cast<off_t>(from));
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (from > 0) text.erase(0, std::min(text.find('\n'), text.size() - 1) + 1);
  return text;
}

LogTail ReadLogTail(pid_t pid, size_t limit_bytes) {
  const auto owner = OwnerOf(pid);
  if (!owner) return {};
  for (const int stream : {2, 1}) {
    const std::string path = ReadProcLink(pid, fmt::format("fd/{}", stream));
    if (!path.starts_with('/') || path.starts_with("/dev/")) continue;
    // The descriptor's own link leads to the very file, also in another mount namespace. A device is not even opened.
    const std::string link = fmt::format("/proc/{}/fd/{}", pid, stream);
    struct stat status = {};
    if (::stat(link.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    const UniqueFd file(::open(link.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!file.valid()) continue;
    std::string text = ReadTail(file.get(), owner->uid, limit_bytes);
    if (!text.empty()) return {.path = Printable(path), .text = std::move(text)};
  }
  return {};
}

}  // namespace lockstep::inspect
