#include "node/control/client/trace_names.h"

#include <fmt/format.h>

#include <ctime>

#include "base/ascii.h"
#include "base/calendar.h"
#include "base/nanoseconds.h"

namespace lockstep::control {

std::string SafeNamePart(std::string_view text) {
  constexpr size_t kMostBytes = 48;
  std::string name;
  for (const char c : text.substr(0, kMostBytes)) {
    const bool safe = IsAlphanumeric(c) || c == '-' || c == '_' || c == '.';
    name += safe ? c : '_';
  }
  if (!name.empty() && name.front() == '.') name.front() = '_';
  return name.empty() ? "x" : name;
}

std::string WindowName(const CaptureWindow& window, int64_t asked_unix_ns) {
  if (window.mode == CaptureWindow::Mode::kIterations) {
    return fmt::format("{}-{}iterations", UtcName(asked_unix_ns), window.iterations);
  }
  return fmt::format("{}-{}ms", UtcName(asked_unix_ns), window.duration_ns / kMillisecondNs);
}

std::string TraceFileName(const Process& process, std::string_view host, std::string_view window_name) {
  std::string name;
  if (!process.job_id.empty()) name += SafeNamePart(process.job_id) + '-';
  name += SafeNamePart(host) + '-';
  if (process.rank) name += fmt::format("rank{}-", *process.rank);
  // A process that the daemon cannot see has pid 0; what it calls itself then tells it from its neighbours.
  const int32_t pid = process.pid > 0 ? process.pid : (process.client_pids.empty() ? 0 : process.client_pids.front());
  name += fmt::format("pid{}-", pid);
  return name + std::string(window_name);
}

}  // namespace lockstep::control
