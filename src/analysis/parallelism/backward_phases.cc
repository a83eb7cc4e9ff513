#include "analysis/parallelism/backward_phases.h"

#include <algorithm>
#include <string_view>

#include "analysis/host_role.h"

namespace lockstep::analysis {
namespace {

enum class RangeRole : uint8_t { kUnknown, kBackward, kWork, kOther };

bool SaysBackward(std::string_view name) {
  constexpr std::string_view kWord = "ackward";  // "Backward", "backward"
  return name.find(kWord) != std::string_view::npos || name.starts_with("autograd::engine::");
}

/// Backward ranges of one thread, and where it began other work.
struct BackwardThread {
  std::vector<Interval> backward;
  std::vector<int64_t> work_ns;
};

class PhaseFinder {
 public:
  explicit PhaseFinder(const RankContext& context)
      : context_(context),
        roles_(context.names().size(), RangeRole::kUnknown),
        ignores_marks_(!context.trace().HasDeviceEvents() && HasOwnRanges()) {}

  std::vector<BackwardPhase> Find() {
    std::vector<BackwardThread> threads;
    for (const model::Track& track : context_.trace().tracks) {
      if (track.lane == model::Lane::kOperators) threads.push_back(Walk(track.events));
    }
    std::vector<Interval> backward;
    const BackwardThread* training = nullptr;  // the thread with most work of its own
    for (const BackwardThread& thread : threads) {
      backward.insert(backward.end(), thread.backward.begin(), thread.backward.end());
      if (training == nullptr || thread.work_ns.size() > training->work_ns.size()) training = &thread;
    }
    if (backward.empty()) return {};
    std::sort(backward.begin(), backward.end(),
              [](const Interval& a, const Interval& b) { return a.start_ns < b.start_ns; });
    std::vector<BackwardPhase> phases;
    for (const Interval& range : backward) {
      if (!phases.empty() && !WorksBetween(*training, phases.back().host.end_ns, range.start_ns)) {
        phases.back().host.end_ns = std::max(phases.back().host.end_ns, range.end_ns);
      } else {
        phases.push_back({range});
      }
    }
    context_.trace().HasDeviceEvents() ? FindOnDevice(&phases) : CopyHost(&phases);
    return phases;
  }

 private:
  /// Are there ranges of autograd's own, not only what the program marks?
  bool HasOwnRanges() const {
    return std::any_of(context_.trace().tracks.begin(), context_.trace().tracks.end(), [&](const model::Track& track) {
      if (track.lane != model::Lane::kOperators) return false;
      for (size_t i = 0; i < track.events.size(); ++i) {
        if (track.events.category[i] == model::Category::kCpuOp && SaysBackward(context_.names()[track.events.name[i]]))
          return true;
      }
      return false;
    });
  }

  RangeRole RoleOf(NameId name, model::Category category) {
    RangeRole& role = roles_[name.value];
    if (role == RangeRole::kUnknown) {
      const std::string_view text = context_.names()[name];
      if (SaysBackward(text)) {
        role = RangeRole::kBackward;
      } else {
        role = HostRoleOf(text) == HostRole::kWork && category == model::Category::kCpuOp ? RangeRole::kWork
                                                                                          : RangeRole::kOther;
      }
    }
    return role;
  }

  /// Events are sorted by (start, longer first) and nest, so a range inside a backward range begins before its end.
  BackwardThread Walk(const model::EventColumns& events) {
    BackwardThread ranges;
    for (size_t i = 0; i < events.size(); ++i) {
      const int64_t start_ns = events.start_ns[i];
      if (ignores_marks_ && events.category[i] == model::Category::kUserAnnotation) continue;
      if (!ranges.backward.empty() && start_ns < ranges.backward.back().end_ns) continue;
      const RangeRole role = RoleOf(events.name[i], events.category[i]);
      if (role == RangeRole::kBackward) {
        ranges.backward.push_back({start_ns, events.end_ns(i)});
      } else if (role == RangeRole::kWork) {
        ranges.work_ns.push_back(start_ns);
      }
    }
    return ranges;
  }

  static bool WorksBetween(const BackwardThread& thread, int64_t from_ns, int64_t to_ns) {
    const auto next = std::lower_bound(thread.work_ns.begin(), thread.work_ns.end(), from_ns);
    return next != thread.work_ns.end() && *next < to_ns;
  }

  void FindOnDevice(std::vector<BackwardPhase>* phases) const {
    const model::RankTrace& trace = context_.trace();
    for (size_t t = 0; t < trace.tracks.size(); ++t) {
      const model::Track& track = trace.tracks[t];
      if (track.lane != model::Lane::kDevice) continue;
      for (size_t i = 0; i < track.events.size(); ++i) {
        if (track.events.category[i] != model::Category::kKernel) continue;
        if (context_.shared->is_communication[track.events.name[i].value]) continue;
        const LaunchRef launch = context_.launches[t][i];
        if (!launch.found()) continue;
        const int64_t launch_ns = trace.tracks[launch.track].events.start_ns[launch.row];
        const size_t p = PhaseAround(*phases, launch_ns, 0);
        if (p == SIZE_MAX) continue;
        const Interval kernel{track.events.start_ns[i], track.events.end_ns(i)};
        std::optional<Interval>& device = (*phases)[p].device;
        if (!device) {
          device = kernel;
        } else {
          device->start_ns = std::min(device->start_ns, kernel.start_ns);
          device->end_ns = std::max(device->end_ns, kernel.end_ns);
        }
      }
    }
  }

  static void CopyHost(std::vector<BackwardPhase>* phases) {
    for (BackwardPhase& phase : *phases) phase.device = phase.host;
  }

  const RankContext& context_;
  std::vector<RangeRole> roles_;
  // Without a device the program waits for its collectives inside of its own mark of the pass, which ends late by that.
  const bool ignores_marks_;
};

}  // namespace

std::vector<BackwardPhase> FindBackwardPhases(const RankContext& context) { return PhaseFinder(context).Find(); }

size_t PhaseAround(const std::vector<BackwardPhase>& phases, int64_t host_ns, int64_t slack_ns) {
  const auto after =
      std::upper_bound(phases.begin(), phases.end(), host_ns,
                       [](int64_t time_ns, const BackwardPhase& phase) { return time_ns < phase.host.start_ns; });
  if (after == phases.begin()) return SIZE_MAX;
  const auto phase = after - 1;
  return host_ns < phase->host.end_ns + slack_ns ? static_cast<size_t>(phase - phases.begin()) : SIZE_MAX;
}

}  // namespace lockstep::analysis
