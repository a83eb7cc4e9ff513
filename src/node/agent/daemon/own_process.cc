#include "node/agent/daemon/own_process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/small_file.h"
#include "base/split.h"

namespace lockstep::agent {
namespace {

std::string ReadAll(const char* path) { return ReadSmallFile(path, size_t{4} << 20).value_or(""); }

// Fields of /proc/self/stat behind the command, which may hold anything: field 3 is the first. Source: proc(5).
std::vector<std::string> StatFields() {
  const std::string text = ReadAll("/proc/self/stat");
  const size_t end = text.rfind(')');
  if (end == std::string::npos) return {};
  const std::vector<std::string_view> fields = SplitAt(std::string_view(text).substr(end + 1), " \n");
  return {fields.begin(), fields.end()};
}

std::optional<double> Number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::optional<double> BootTimeSeconds() {
  const std::string text = ReadAll("/proc/stat");
  const size_t at = text.find("\nbtime ");
  if (at == std::string::npos) return std::nullopt;
  return Number(std::string_view(text).substr(at + 7));
}

}  // namespace

OwnProcess ReadOwnProcess() {
  OwnProcess own;
  struct rusage usage = {};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    own.cpu_seconds = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                      static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
  }
  const std::vector<std::string> fields = StatFields();
  constexpr size_t kStart = 22 - 3;
  constexpr size_t kResidentPages = 24 - 3;
  if (fields.size() > kResidentPages) {
    const std::optional<double> start = Number(fields[kStart]);
    const std::optional<double> boot = BootTimeSeconds();
    if (start && boot) own.start_time_seconds = *boot + *start / static_cast<double>(::sysconf(_SC_CLK_TCK));
    const std::optional<double> pages = Number(fields[kResidentPages]);
    if (pages) own.resident_bytes = *pages * static_cast<double>(::sysconf(_SC_PAGESIZE));
  }
  std::error_code error;
  double count = 0;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end; it.increment(error)) {
    ++count;
  }
  if (!error) own.open_fds = count - 1;  // Without the one that counts them.
  struct rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) own.most_fds = static_cast<double>(limit.rlim_cur);
  return own;
}

std::optional<int32_t> PtraceScope() {
  const auto scope = Number(ReadAll("/proc/sys/kernel/yama/ptrace_scope"));
  if (!scope || *scope < 0 || *scope > 3) return std::nullopt;
  return static_cast<int32_t>(*scope);
}

bool HasPtraceCapability() {
  constexpr int kSysPtrace = 19;  // CAP_SYS_PTRACE of <linux/capability.h>.
  constexpr std::string_view kName = "\nCapEff:\t";
  const std::string status = ReadAll("/proc/self/status");
  const size_t at = status.find(kName);
  if (at == std::string::npos) return false;
  uint64_t capabilities = 0;
  const char* digits = status.data() + at + kName.size();
  const auto [end, error] = std::from_chars(digits, status.data() + status.size(), capabilities, 16);
  return error == std::errc() && (capabilities >> kSysPtrace & 1) != 0;
}

}  // namespace lockstep::agent
