#include "analysis/step_windows.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

namespace lockstep::analysis {
namespace {

constexpr int64_t kNothingLaunched = std::numeric_limits<int64_t>::min();

/// What the steps launched on the device.
struct StepLaunches {
  std::vector<int64_t> last_end_ns;            ///< By step; kNothingLaunched when the step launched nothing.
  std::optional<int64_t> first_step_start_ns;  ///< First start of what step 0 launched.
};

/// Index of the step that encloses a launch call, or steps.size(). `hint` is the answer for the previous call.
size_t EnclosingStep(const std::vector<model::Step>& steps, int64_t start_ns, int64_t end_ns, size_t hint) {
  const auto encloses = [&](size_t i) { return steps[i].start_ns <= start_ns && end_ns <= steps[i].end_ns; };
  if (hint < steps.size() && encloses(hint)) return hint;
  const auto after = std::upper_bound(steps.begin(), steps.end(), start_ns,
                                      [](int64_t time, const model::Step& step) { return time < step.start_ns; });
  if (after == steps.begin()) return steps.size();
  const size_t candidate = static_cast<size_t>(after - steps.begin()) - 1;
  return encloses(candidate) ? candidate : steps.size();
}

/// Calls visit(step or steps.size(), start, end) for every device event in scope.
template <typename Visit>
void ForEachDeviceEvent(const RankContext& context, Visit visit) {
  const auto& tracks = context.trace().tracks;
  for (size_t t = 0; t < tracks.size(); ++t) {
    if (tracks[t].lane != model::Lane::kDevice) continue;
    const model::EventColumns& events = tracks[t].events;
    size_t step = context.steps.size();
    for (size_t row = 0; row < events.size(); ++row) {
      if (!context.InScope(t, row)) continue;
      const LaunchRef launch = context.launches[t][row];
      size_t found = context.steps.size();
      if (launch.found()) {
        const model::EventColumns& calls = tracks[launch.track].events;
        found = EnclosingStep(context.steps, calls.start_ns[launch.row], calls.end_ns(launch.row), step);
        step = found;
      }
      visit(found, events.start_ns[row], events.end_ns(row));
    }
  }
}

}  // namespace

std::vector<model::Step> StepWindows(const RankContext& context) {
  std::vector<model::Step> windows = context.steps;
  if (windows.empty()) return windows;

  StepLaunches launches;
  launches.last_end_ns.assign(windows.size(), kNothingLaunched);
  ForEachDeviceEvent(context, [&](size_t step, int64_t start_ns, int64_t end_ns) {
    if (step == windows.size()) return;
    launches.last_end_ns[step] = std::max(launches.last_end_ns[step], end_ns);
    if (step == 0) {
      launches.first_step_start_ns = std::min(launches.first_step_start_ns.value_or(start_ns), start_ns);
    }
  });

  int64_t earliest_ns = windows[0].start_ns;
  if (launches.first_step_start_ns) {
    ForEachDeviceEvent(context, [&](size_t step, int64_t, int64_t end_ns) {
      if (step == windows.size() && end_ns < *launches.first_step_start_ns) earliest_ns = std::max(earliest_ns, end_ns);
    });
  }
  for (size_t i = 0; i < windows.size(); ++i) {
    windows[i].start_ns = std::max(windows[i].start_ns, earliest_ns);
    windows[i].end_ns = std::max({windows[i].end_ns, launches.last_end_ns[i], windows[i].start_ns});
    earliest_ns = windows[i].end_ns;
  }
  if (context.options().drop_last_step && windows.size() >= 2) windows.pop_back();
  return windows;
}

}  // namespace lockstep::analysis
