#include "node/agent/job_metrics/step_exemplars.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "base/nanoseconds.h"
#include "base/now.h"
#include "model/stages/step_stages.h"
#include "node/agent/sensors/rank_label.h"

namespace lockstep::agent {
namespace {

using control::Capture;
using control::CaptureState;
using control::CaptureTarget;
using control::CaptureWindow;
using control::TargetState;

struct Shown {
  int64_t duration_ns;
  int64_t end_ns;
  std::string rank;
};

/// Steps of a target's process that lie in the time in which it was captured. Where that begins at a moment that was
/// set, its end is known too; else it ends at some time before the trace is complete.
void AddShown(const CaptureWindow& window, const CaptureTarget& target, const KeptSteps& kept,
              std::vector<Shown>* shown) {
  if (target.state != TargetState::kDone || !target.begun_unix_ns || !target.finished_unix_ns) return;
  int64_t from_ns = *target.begun_unix_ns;
  int64_t to_ns = *target.finished_unix_ns;
  if (window.mode == CaptureWindow::Mode::kDuration && window.start_unix_ns && !target.missed_start_unix_ns) {
    from_ns = *window.start_unix_ns;
    to_ns = from_ns + window.duration_ns;
  }
  for (const control::RankSteps& rank : kept.Ask({.job_id = target.process.job_id}).ranks) {
    if (rank.pid != target.process.pid) continue;
    const Result<std::vector<model::StepStages>> steps = control::UnpackSteps(rank.steps);
    if (!steps) continue;
    for (const model::StepStages& step : *steps) {
      const int64_t end_ns = step.start_ns + step.duration_ns;
      if (step.start_ns < from_ns || end_ns > to_ns) continue;
      shown->push_back({step.duration_ns, end_ns, RankLabel(target.process.rank, target.process.pid)});
    }
  }
}

}  // namespace

std::map<std::string, Exemplar> StepExemplars::Find(const Capture& capture, const KeptSteps& kept) {
  std::map<std::string, std::vector<Shown>> by_job;
  for (const CaptureTarget& target : capture.targets) {
    AddShown(capture.spec.window, target, kept, &by_job[JobLabel(target.process.job_id, target.process.pid)]);
  }
  std::map<std::string, Exemplar> found;
  for (auto& [job, shown] : by_job) {
    if (shown.empty()) continue;
    const auto middle = shown.begin() + static_cast<ptrdiff_t>(shown.size() / 2);
    std::nth_element(shown.begin(), middle, shown.end(), [](const Shown& a, const Shown& b) {
      return std::tie(a.duration_ns, a.end_ns) < std::tie(b.duration_ns, b.end_ns);
    });
    found[job] = {.family = "lockstep_step_duration_seconds",
                  .series = {{"job_id", job}},
                  .labels = {{"capture", capture.id}, {"rank", middle->rank}},
                  .value = Seconds(middle->duration_ns),
                  .unix_seconds = Seconds(middle->end_ns)};
  }
  return found;
}

std::vector<Exemplar> StepExemplars::Of(const std::vector<Capture>& captures, const KeptSteps& kept) {
  const MutexLock lock(mutex_);
  std::map<std::string, std::map<std::string, Exemplar>> found;
  std::map<std::string, Exemplar> newest;
  for (const Capture& capture : captures) {
    if (capture.state != CaptureState::kDone && capture.state != CaptureState::kPartial) continue;
    const auto known = found_.find(capture.id);
    std::map<std::string, Exemplar> of_capture = known != found_.end() ? known->second : Find(capture, kept);
    // What ranks have just recorded is not taken yet.
    const bool is_new = UnixNow() - capture.finished_unix_ns.value_or(0) < 60 * kSecondNs;
    if (!of_capture.empty() || !is_new) found[capture.id] = of_capture;
    newest.insert(of_capture.begin(), of_capture.end());
  }
  found_ = std::move(found);
  std::vector<Exemplar> exemplars;
  for (auto& [job, exemplar] : newest) exemplars.push_back(std::move(exemplar));
  return exemplars;
}

}  // namespace lockstep::agent
