#include "node/agent/daemon/own_process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "base/proc_stat.h"
#include "base/small_file.h"
#include "base/text_scan.h"

namespace lockstep::agent {
namespace {

std::string ReadAll(const char* path) { return ReadSmallFile(path, size_t{4} << 20).value_or(""); }

std::optional<double> BootTimeSeconds() {
  const std::string text = ReadAll("/proc/stat");
  const size_t at = text.find("\nbtime ");
  if (at == std::string::npos) return std::nullopt;
  return LeadingNumber<double>(std::string_view(text).substr(at + 7));
}

}  // namespace

OwnProcess ReadOwnProcess() {
  OwnProcess own;
  struct rusage usage = {};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    own.cpu_seconds = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                      static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
  }
  if (const auto stat = ParseProcStat(ReadAll("/proc/self/stat"))) {
    const auto start = static_cast<double>(stat->start_ticks);
    const std::optional<double> boot = BootTimeSeconds();
    if (boot) own.start_time_seconds = *boot + start / static_cast<double>(::sysconf(_SC_CLK_TCK));
    const auto pages = stat->resident_pages;
    if (pages) own.resident_bytes = static_cast<double>(*pages) * static_cast<double>(::sysconf(_SC_PAGESIZE));
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
  const auto scope = LeadingNumber<double>(ReadAll("/proc/sys/kernel/yama/ptrace_scope"));
  if (!scope || *scope < 0 || *scope > 3) return std::nullopt;
  return static_cast<int32_t>(*scope);
}

bool HasPtraceCapability() {
  constexpr int kSysPtrace = 19;  // CAP_SYS_PTRACE of <linux/capability.h>.
  constexpr std::string_view kName = "\nCapEff:\t";
  const std::string status = ReadAll("/proc/self/status");
  const size_t at = status.find(kName);
  if (at == std::string::npos) return false;
  const auto capabilities = LeadingNumber<uint64_t>(std::string_view(status).substr(at + kName.size()), 16);
  return capabilities && (*capabilities >> kSysPtrace & 1) != 0;
}

}  // namespace lockstep::agent
