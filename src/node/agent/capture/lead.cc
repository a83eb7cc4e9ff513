#include "node/agent/capture/lead.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/nanoseconds.h"
#include "node/agent/kineto/config_text.h"

namespace lockstep::agent {
namespace {

// The profiler looks once a second, and wants a second more than its warm-up.
constexpr int64_t kTickNs = 2 * kSecondNs;

struct Needs {
  int64_t poll_ns = 0;
  int64_t warmup_ns = 0;
};

Needs NeedsOf(const std::vector<control::Process>& processes, const control::CaptureWindow& window) {
  Needs needs;
  for (const control::Process& process : processes) {
    needs.poll_ns = std::max(needs.poll_ns, process.poll_period_ns);
    needs.warmup_ns = std::max(needs.warmup_ns, WarmupNs(window, IsDeviceTraced(process)));
  }
  return needs;
}

}  // namespace

bool IsDeviceTraced(const control::Process& process) { return !process.device.empty() && process.device != "cpu"; }

int64_t LeastLeadNs(const std::vector<control::Process>& processes, const control::CaptureWindow& window) {
  const Needs needs = NeedsOf(processes, window);
  return needs.poll_ns + needs.warmup_ns + kTickNs;
}

Status CheckLead(const std::vector<control::Process>& processes, const control::CaptureWindow& window,
                 int64_t now_unix_ns) {
  if (window.mode != control::CaptureWindow::Mode::kDuration || !window.start_unix_ns) return {};
  const int64_t from = std::max(now_unix_ns, window.deliver_from_unix_ns.value_or(0));
  const int64_t least = LeastLeadNs(processes, window);
  const int64_t lead = *window.start_unix_ns - from;
  if (lead >= least) return {};
  const Needs needs = NeedsOf(processes, window);
  return Error{.code = ErrorCode::kInvalidArgument,
               .message = fmt::format(
                   "the common start is {:.1f} s {}, which would silently lose processes: they fetch requests every "
                   "{:.1f} s, and need {:.0f} s of warm-up and 2 s after that; the least that works is {:.1f} s, "
                   "{:.0f} s leaves a margin",
                   Seconds(lead < 0 ? -lead : lead), lead < 0 ? "in the past" : "ahead", Seconds(needs.poll_ns),
                   Seconds(needs.warmup_ns), Seconds(least), std::ceil(Seconds(least)) + 1)};
}

}  // namespace lockstep::agent
