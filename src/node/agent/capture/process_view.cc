#include "node/agent/capture/process_view.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <string_view>

#include "base/proc_stat.h"
#include "base/small_file.h"
#include "base/text_scan.h"
#include "node/proc/job_environment.h"

namespace lockstep::agent {
namespace {

std::optional<ProcStat> ReadStat(int32_t pid) {
  return ParseProcStat(ReadSmallFile(fmt::format("/proc/{}/stat", pid)).value_or(""));
}

}  // namespace

std::optional<bool> HasEnded(const control::Process& process) {
  if (process.pid <= 0) return std::nullopt;
  const auto stat = ReadStat(process.pid);
  if (!stat) {
    struct ::stat entry;
    if (::stat(fmt::format("/proc/{}", process.pid).c_str(), &entry) != 0 && errno == ENOENT) return true;
    return std::nullopt;
  }
  return stat->start_ticks != process.start_ticks || stat->state == 'Z' || stat->state == 'X';
}

std::vector<int32_t> AncestorsOf(int32_t pid) {
  std::vector<int32_t> ancestors;
  while (pid > 1 && ancestors.size() < 64) {
    const auto stat = ReadStat(pid);
    if (!stat || stat->parent_pid <= 0) break;
    pid = stat->parent_pid;
    ancestors.push_back(pid);
  }
  return ancestors;
}

bool HasOtherFileView(int32_t pid) {
  if (pid <= 0) return false;
  struct ::stat ours, theirs;
  const auto differs = [&](const char* name) {
    return ::stat(fmt::format("/proc/self/{}", name).c_str(), &ours) == 0 &&
           ::stat(fmt::format("/proc/{}/{}", pid, name).c_str(), &theirs) == 0 &&
           (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino);
  };
  return differs("ns/mnt") || differs("root");
}

std::optional<std::string> EnvironmentOf(int32_t pid, const std::string& name) {
  if (pid <= 0) return std::nullopt;
  const auto text = ReadSmallFile(fmt::format("/proc/{}/environ", pid), size_t{4} << 20);
  if (!text) return std::nullopt;
  const std::string_view value = proc::EnvironmentValue(*text, name);
  return value.empty() ? std::nullopt : std::optional(std::string(value));
}

std::optional<std::pair<int32_t, int32_t>> TorchRelease(const std::string& torch_version) {
  TextCursor cursor(torch_version);
  const auto major = cursor.Number<int32_t>();
  const auto minor = major && cursor.Skip(".") ? cursor.Number<int32_t>() : std::nullopt;
  if (!minor) return std::nullopt;
  return std::pair(*major, *minor);
}

}  // namespace lockstep::agent
