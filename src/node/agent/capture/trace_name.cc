#include "node/agent/capture/trace_name.h"

#include <fmt/format.h>

#include <ctime>

#include "base/ascii.h"
#include "base/calendar.h"
#include "base/nanoseconds.h"

namespace lockstep::agent {
namespace {

bool IsPlain(char c) { return IsAlphanumeric(c) || c == '_'; }

}  // namespace

std::string SafePart(std::string_view text, size_t limit) {
  std::string part;
  for (const char c : text) {
    if (part.size() >= limit) break;
    if (IsPlain(c)) {
      part.push_back(c);
    } else if (!part.empty() && part.back() != '-') {
      part.push_back('-');
    }
  }
  while (!part.empty() && part.back() == '-') part.pop_back();
  return part;
}

std::string TraceName(const control::Process& process, std::string_view host, int64_t start_unix_ns) {
  constexpr size_t kPartLimit = 48;  // Of 255 bytes that a file name may have, with Kineto's own additions.
  std::string name;
  if (const std::string job = SafePart(process.job_id, kPartLimit); !job.empty()) name += job + "-";
  const std::string host_part = SafePart(host, kPartLimit);
  name += host_part.empty() ? "node" : host_part;
  if (process.rank && *process.rank >= 0) name += fmt::format("-rank{}", *process.rank);
  const int32_t pid = process.pid != 0 || process.client_pids.empty() ? process.pid : process.client_pids.front();
  name += fmt::format("-pid{}-{}.json", pid, CompactUtc(start_unix_ns));
  return name;
}

std::string CompactUtc(int64_t unix_ns) {
  const std::tm t = Utc(unix_ns);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}{:03}Z", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour,
                     t.tm_min, t.tm_sec, unix_ns / kMillisecondNs % 1000);
}

std::string ClockUtc(int64_t unix_ns) {
  const std::tm t = Utc(unix_ns);
  return fmt::format("{:02}:{:02}:{:02} UTC", t.tm_hour, t.tm_min, t.tm_sec);
}

}  // namespace lockstep::agent
