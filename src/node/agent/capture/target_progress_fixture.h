#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/nanoseconds.h"
#include "node/agent/capture/target_progress.h"

namespace lockstep::agent {

/// For tests: one target, driven by a clock of the test's: seconds since the request.
class Way {
 public:
  static constexpr int64_t kWall = 1'800'000'000 * kSecondNs;

  explicit Way(const TargetPlan& plan) : progress(plan, At(0)) {
    facts.registered = true;
    facts.last_poll_unix_ns = kWall - kSecondNs;
  }
  /// As an earlier daemon left it.
  Way(const TargetPlan& plan, const control::CaptureTarget& left) : Way(plan) {
    progress = TargetProgress(plan, At(0), left);
  }
  static Instant At(double seconds) {
    const auto ns = static_cast<int64_t>(seconds * 1e9);
    return {.wall_ns = kWall + ns, .monotonic_ns = 7 * kSecondNs + ns};
  }
  // Time passes to `seconds`, in steps of 0.2 s as the manager's; polls come each 5 s while not silent.
  void To(double seconds) {
    for (; now_ < seconds; now_ = std::min(seconds, now_ + 0.2)) Step();
    Step();
  }
  void Step() {
    if (polls && !facts.silent && kWall + static_cast<int64_t>(now_ * 1e9) - facts.last_poll_unix_ns >= 5 * kSecondNs) {
      facts.last_poll_unix_ns = At(now_).wall_ns;
      facts.busy = busy;
    }
    progress.Observed(file, At(now_));
    progress.Polled(facts, At(now_));
    progress.Tick(At(now_));
    if (progress.TakeAskAgain()) {  // As the manager does.
      file = {};
      ++asked_again;
    }
    if (progress.WantsWithdrawal() && withdraw) progress.GiveUp(At(now_));
  }
  void Deliver() { progress.Delivered(At(now_).wall_ns, At(now_)); }
  void Unfinished(uint64_t size) { file = {.kind = FileObservation::Kind::kUnfinished, .size_bytes = size}; }
  void Finished(uint64_t size) { file = {.kind = FileObservation::Kind::kFinished, .size_bytes = size}; }

  TargetProgress progress;
  PollFacts facts;
  FileObservation file;
  int asked_again = 0;
  bool busy = false;
  bool polls = true;
  bool withdraw = true;

 private:
  double now_ = 0;
};

inline TargetPlan Duration() {
  return {.duration_ns = kSecondNs / 2,
          .warmup_ns = kSecondNs,
          .timeout_ns = 60 * kSecondNs,
          .torch_release = std::pair(2, 13)};
}
inline TargetPlan Timed(double start) {
  TargetPlan plan = Duration();
  plan.start_unix_ns = Way::At(start).wall_ns;
  return plan;
}
inline TargetPlan AtSteps() {
  TargetPlan plan = Duration();
  plan.at_steps = true;
  return plan;
}
inline TargetPlan Iterations() {
  TargetPlan plan = Duration();
  plan.mode = control::CaptureWindow::Mode::kIterations;
  return plan;
}

}  // namespace lockstep::agent
