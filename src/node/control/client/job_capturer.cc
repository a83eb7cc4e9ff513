#include "node/control/client/job_capturer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "base/nanoseconds.h"
#include "base/now.h"
#include "node/control/client/trace_names.h"

namespace lockstep::control {
namespace {

constexpr int64_t kFollowEveryNs = 300 * kMillisecondNs;
// A node that has not answered for this long has none to give: its daemon may be restarted in the meantime.
constexpr int64_t kSilenceNs = 30 * kSecondNs;

}  // namespace

void JobCapturer::Start(const CaptureWindow& window) {
  std::vector<std::vector<std::string>> ids(result_.nodes.size());
  for (const JobTarget& target : result_.targets) ids[target.node_idx].push_back(target.process.id);
  std::vector<std::optional<Capture>> captures(result_.nodes.size());
  const auto has_targets = [&](size_t i) { return !ids[i].empty() && result_.nodes[i].problem.empty(); };
  const std::vector<Status> statuses = links_.ForEach(
      result_.nodes, kQuestionNs, has_targets, [&](size_t i, NodeClient& client, int64_t left_ns) -> Status {
        CaptureSpec spec;
        spec.group = result_.group;
        spec.selector.process_ids = ids[i];
        spec.selector.include_launchers = true;  // They are named one by one.
        spec.window = window;
        if (spec.window.start_unix_ns) {
          const int64_t correction = CorrectionOf(i);
          *spec.window.start_unix_ns += correction / kMillisecondNs * kMillisecondNs;
        }
        if (spec.window.deliver_from_unix_ns) *spec.window.deliver_from_unix_ns += CorrectionOf(i);
        spec.options = request_.options;
        spec.timeout_ns = request_.timeout_ns;
        spec.allow_unsafe = request_.allow_unsafe;
        ASSIGN_OR_RETURN(captures[i], client.StartCapture(spec, left_ns));
        return {};
      });
  refusals_.clear();
  answered_unix_ns_.assign(result_.nodes.size(), UnixNow());
  for (size_t i = 0; i < result_.nodes.size(); ++i) {
    if (captures[i]) {
      result_.nodes[i].capture_id = captures[i]->id;
      Update(i, *captures[i]);
    } else if (has_targets(i)) {
      refusals_.push_back(statuses[i].error());
      for (JobTarget& target : result_.targets) {
        if (target.node_idx != i) continue;
        target.state = TargetState::kRefused;
        target.reason = statuses[i].error().message;
      }
    }
  }
  for (JobTarget& target : result_.targets) {
    const JobNodeState& node = result_.nodes[target.node_idx];
    if (!captures[target.node_idx] || target.state != TargetState::kQueued || !target.trace_name.empty()) continue;
    const auto& listed = captures[target.node_idx]->targets;
    const bool known = std::any_of(listed.begin(), listed.end(),
                                   [&](const CaptureTarget& other) { return other.process.id == target.process.id; });
    if (known) continue;
    target.state = TargetState::kRefused;
    target.reason =
        fmt::format("the daemon on {} does not trace it for you: it belongs to {}, or has just ended", node.host,
                    target.process.user.empty() ? fmt::format("uid {}", target.process.uid) : target.process.user);
  }
}

void JobCapturer::Update(size_t node_idx, const Capture& capture) {
  answered_unix_ns_[node_idx] = UnixNow();
  NoteEnds(node_idx, capture);
  for (JobTarget& target : result_.targets) {
    if (target.node_idx != node_idx || IsFinal(target.state)) continue;
    const auto found = std::find_if(capture.targets.begin(), capture.targets.end(),
                                    [&](const CaptureTarget& other) { return other.process.id == target.process.id; });
    if (found == capture.targets.end()) continue;
    target.state = found->state;
    target.reason = found->reason;
    target.delivered_unix_ns = found->delivered_unix_ns;
    target.finished_unix_ns = found->finished_unix_ns;
    target.trace_name = found->trace_name;
    target.trace_bytes = found->trace_bytes;
    if (target.state != TargetState::kDone) continue;
    TraceJob job;
    job.target_idx = static_cast<size_t>(&target - result_.targets.data());
    job.node_idx = node_idx;
    job.capture_id = capture.id;
    job.trace_name = target.trace_name;
    job.bytes = target.trace_bytes;
    job.path = request_.folder + '/' +
               TraceFileName(target.process, result_.nodes[node_idx].host, result_.window_name) + ".json";
    fetcher_.Add(std::move(job));
  }
}

// A crash that the trace has caused may come after it.
void JobCapturer::NoteEnds(size_t node_idx, const Capture& capture) {
  for (JobTarget& target : result_.targets) {
    if (target.node_idx != node_idx || target.end) continue;
    const auto found = std::find_if(capture.targets.begin(), capture.targets.end(),
                                    [&](const CaptureTarget& other) { return other.process.id == target.process.id; });
    if (found == capture.targets.end() || !found->end) continue;
    target.end = found->end;
    if (target.state != TargetState::kDone || !target.end->IsDeath()) continue;
    const int64_t after_ns = std::max<int64_t>(target.end->unix_ns - target.finished_unix_ns.value_or(0), 0);
    target.reason = fmt::format("its process {} {:.1f} s after its trace", EndWords(*target.end), Seconds(after_ns));
  }
}

void JobCapturer::Fetched() {
  for (FetchedTrace& fetched : fetcher_.Take()) {
    JobTarget& target = result_.targets[fetched.target_idx];
    if (fetched.status) {
      target.file = fetched.path.substr(fetched.path.rfind('/') + 1);
      target.file_bytes = fetched.file_bytes;
      target.facts = fetched.facts;
    } else {
      target.fetch_error = fetched.status.error().ToString();
    }
  }
}

void JobCapturer::AskAll() {
  std::vector<bool> open(result_.nodes.size(), false);
  for (const JobTarget& target : result_.targets) {
    if (!IsFinal(target.state)) open[target.node_idx] = true;
  }
  std::vector<std::optional<Capture>> captures(result_.nodes.size());
  const std::vector<Status> statuses = links_.ForEach(
      result_.nodes, kQuestionNs, [&](size_t i) { return open[i]; },
      [&](size_t i, NodeClient& client, int64_t left_ns) -> Status {
        ASSIGN_OR_RETURN(captures[i], client.GetCapture(result_.nodes[i].capture_id, left_ns));
        return {};
      });
  for (size_t i = 0; i < result_.nodes.size(); ++i) {
    if (captures[i]) Update(i, *captures[i]);
    if (!open[i] || captures[i] || UnixNow() - answered_unix_ns_[i] < kSilenceNs) continue;
    result_.nodes[i].problem = fmt::format("has not answered for {:.0f} s: {}", Seconds(kSilenceNs),
                                           statuses[i] ? "" : statuses[i].error().message);
    for (JobTarget& target : result_.targets) {
      if (target.node_idx != i || IsFinal(target.state)) continue;
      target.state = TargetState::kTimedOut;
      target.reason = fmt::format("its node {} {}", result_.nodes[i].host, result_.nodes[i].problem);
    }
  }
}

void JobCapturer::EndRest(TargetState state, const std::string& reason) {
  for (JobTarget& target : result_.targets) {
    if (IsFinal(target.state)) continue;
    target.state = state;
    target.reason = target.reason.empty() ? reason : fmt::format("{} ({})", reason, target.reason);
  }
}

void JobCapturer::CancelAll() {
  links_.ForEach(
      result_.nodes, kQuestionNs,
      [&](size_t i) { return !result_.nodes[i].capture_id.empty() && result_.nodes[i].problem.empty(); },
      [&](size_t i, NodeClient& client, int64_t left_ns) -> Status {
        ASSIGN_OR_RETURN(const Capture ignored, client.CancelCapture(result_.nodes[i].capture_id, left_ns));
        static_cast<void>(ignored);
        return {};
      });
}

void JobCapturer::Follow(const CaptureWindow& window) {
  int64_t deadline = UnixNow() + request_.timeout_ns;
  if (window.mode == CaptureWindow::Mode::kDuration) {
    deadline += window.duration_ns + result_.lead.lead_ns;
    if (window.start_unix_ns)
      deadline = std::max(deadline, *window.start_unix_ns + window.duration_ns + request_.timeout_ns);
  }
  while (true) {
    Fetched();
    Show(JobProgress::Phase::kFollowing);
    if (cancelled()) {
      EndRest(TargetState::kCancelled, "cancelled");
      CancelAll();
      fetcher_.Cancel();
    }
    if (AllFinal()) break;
    if (UnixNow() > deadline) {
      EndRest(TargetState::kTimedOut, fmt::format("no trace within {:.0f} s", Seconds(request_.timeout_ns)));
      CancelAll();
      break;
    }
    for (int64_t slept = 0; slept < kFollowEveryNs && !cancelled(); slept += 50 * kMillisecondNs) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(50 * kMillisecondNs));
    }
    if (!cancelled()) AskAll();
  }
  while (fetcher_.busy()) {
    if (cancelled()) fetcher_.Cancel();
    std::this_thread::sleep_for(std::chrono::nanoseconds(10 * kMillisecondNs));
    Fetched();
    Show(JobProgress::Phase::kFollowing);
  }
  Fetched();
}

// What was brought here, or is not wanted, goes from the nodes; a trace that could not be fetched stays.
void JobCapturer::RemoveFromNodes() {
  std::vector<bool> keep(result_.nodes.size(), false);
  for (JobTarget& target : result_.targets) {
    if (target.fetch_error.empty() || cancelled()) continue;
    keep[target.node_idx] = true;
    target.reason = fmt::format("could not be fetched: {}; it is still on {}, in capture {}", target.fetch_error,
                                result_.nodes[target.node_idx].host, result_.nodes[target.node_idx].capture_id);
  }
  std::vector<std::optional<Capture>> last(result_.nodes.size());
  links_.ForEach(
      result_.nodes, kQuestionNs,
      [&](size_t i) { return !result_.nodes[i].capture_id.empty() && !keep[i] && result_.nodes[i].problem.empty(); },
      [&](size_t i, NodeClient& client, int64_t left_ns) -> Status {
        ASSIGN_OR_RETURN(last[i], client.CancelCapture(result_.nodes[i].capture_id, left_ns));
        return {};
      });
  for (size_t i = 0; i < last.size(); ++i) {
    if (last[i]) NoteEnds(i, *last[i]);
  }
}

void JobCapturer::Reset() {
  for (JobTarget& target : result_.targets) {
    if (target.kept()) ::unlink((request_.folder + '/' + target.file).c_str());
    JobTarget fresh;
    fresh.node_idx = target.node_idx;
    fresh.process = target.process;
    target = std::move(fresh);
  }
  for (JobNodeState& node : result_.nodes) node.capture_id.clear();
}

}  // namespace lockstep::control
