#include "control/client/job_capture.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>
#include <thread>
#include <utility>

#include "control/client/job_capture_choice.h"
#include "control/client/job_links.h"
#include "control/client/trace_fetcher.h"
#include "control/client/trace_names.h"

namespace lockstep::control {
namespace {

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kFollowEvery = 300 * kMillisecond;
constexpr int64_t kQuestionNs = 10 * kSecond;
// A node that has not answered for this long has none to give: its daemon may be restarted in the meantime.
constexpr int64_t kSilenceNs = 30 * kSecond;
constexpr int kMostAttempts = 3;
constexpr int kMostLeads = 3;
constexpr int64_t kLongerLead = 3 * kSecond;

double Seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

std::string RandomName() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

class JobCapturer {
 public:
  explicit JobCapturer(const JobCaptureRequest& request)
      : request_(request), links_(request), fetcher_(request.nodes, request.connect, request.compress) {}

  Result<JobCaptureResult> Run();

 private:
  std::string FreeWindowName() const;
  Status Choose();
  Status CaptureAtOnce();
  void CaptureSteps();
  Result<CaptureWindow> PlanWindow(int64_t extra_lead_ns);
  void Start(const CaptureWindow& window);
  bool LeadWasRefused() const;
  void Follow(const CaptureWindow& window);
  void AskAll();
  void Update(size_t node_idx, const Capture& capture);
  void Fetched();
  void EndRest(TargetState state, const std::string& reason);
  void CancelAll();
  void RemoveFromNodes();
  void Reset();
  std::vector<PollPhase> Phases(const std::vector<NodeProcesses>& nodes) const;
  void CompareStarts();
  std::vector<size_t> KeptTargets() const;

  bool cancelled() const { return request_.cancelled != nullptr && *request_.cancelled; }
  int64_t CorrectionOf(size_t node_idx) const {
    const auto& clock = result_.nodes[node_idx].clock;
    return clock ? clock->Correction() : 0;
  }
  int64_t ErrorOf(size_t node_idx) const {
    const auto& clock = result_.nodes[node_idx].clock;
    if (!clock) return 0;
    return clock->uncertainty_ns + (clock->Correction() == 0 ? std::abs(clock->offset_ns) : 0);
  }
  bool AllFinal() const {
    return std::all_of(result_.targets.begin(), result_.targets.end(),
                       [](const JobTarget& target) { return IsFinal(target.state); });
  }
  void Show(JobProgress::Phase phase, std::string message = {}) const {
    if (!request_.on_progress) return;
    request_.on_progress({phase, result_.nodes, result_.targets, result_.start_unix_ns, std::move(message)});
  }

  const JobCaptureRequest& request_;
  JobCaptureResult result_;
  JobLinks links_;
  TraceFetcher fetcher_;
  std::vector<int64_t> answered_unix_ns_;  // By node: when it last said something of its capture.
  std::vector<Error> refusals_;            // By nodes, of the last start.
};

// Another capture may have begun within the same second and written to the same folder.
std::string JobCapturer::FreeWindowName() const {
  const std::string name = WindowName(request_.window, result_.asked_unix_ns);
  std::error_code error;
  int taken = 0;
  for (const auto& entry : std::filesystem::directory_iterator(request_.folder, error)) {
    if (entry.path().filename().string().find(name) != std::string::npos) ++taken;
  }
  return taken == 0 ? name : fmt::format("{}-{}", name, taken + 1);
}

Status JobCapturer::Choose() {
  for (const Endpoint& endpoint : request_.nodes) {
    JobNodeState node;
    node.endpoint = endpoint;
    node.host = endpoint.host;
    result_.nodes.push_back(std::move(node));
  }
  Show(JobProgress::Phase::kAsking);
  const std::vector<NodeProcesses> answers = links_.Ask(result_.nodes);
  if (answers.empty()) {
    if (result_.nodes.empty()) return Error{ErrorCode::kNotFound, "no node was named"};
    if (result_.nodes.size() == 1) return Error{ErrorCode::kNotFound, result_.nodes[0].problem};
    return Error{ErrorCode::kNotFound, fmt::format("none of the {} nodes answers; {}: {}", result_.nodes.size(),
                                                   result_.nodes[0].host, result_.nodes[0].problem)};
  }
  const uint32_t uid = ::geteuid();
  ASSIGN_OR_RETURN(JobChoice choice,
                   ChooseTargets(request_.selector, answers, uid == 0 ? std::nullopt : std::optional<uint32_t>(uid)));
  result_.targets = std::move(choice.targets);
  result_.world_size = choice.world_size;
  result_.missing_ranks = std::move(choice.missing_ranks);
  result_.other_user_count = choice.other_user_count;
  if (!result_.missing_ranks.empty()) {
    const bool silent_node = answers.size() < result_.nodes.size();
    result_.missing_reason = silent_node ? "they are not registered where nodes answered"
                             : request_.nodes_are_whole_job
                                 ? "they are not registered: not started with KINETO_USE_DAEMON=1, in a container "
                                   "without the daemon's socket, or ended"
                                 : "they are not registered here: on other nodes, or not started with "
                                   "KINETO_USE_DAEMON=1";
  }
  return {};
}

// The window for all nodes, by the caller's clock.
Result<CaptureWindow> JobCapturer::PlanWindow(int64_t extra_lead_ns) {
  CaptureWindow window = request_.window;
  window.start_unix_ns.reset();
  result_.start_unix_ns.reset();
  std::vector<Process> processes;
  int64_t clock_error = 0;
  for (const JobTarget& target : result_.targets) {
    processes.push_back(target.process);
    clock_error = std::max(clock_error, ErrorOf(target.node_idx));
  }
  result_.lead = ComputeLead(processes, window.warmup_ns, links_.RoundNs(result_.nodes), clock_error);
  if (request_.start == StartMode::kNow || (request_.start == StartMode::kAuto && processes.size() < 2)) return window;
  int64_t lead = result_.lead.lead_ns + extra_lead_ns;
  if (request_.start == StartMode::kLead) {
    lead = request_.lead_ns;
    if (lead < result_.lead.least_ns) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("a start in {:.3g} s would lose ranks: these processes need at least {:.1f} s ({:.3g} s "
                               "until the last has asked for work, {:.3g} s to warm up, {:.3g} s for the profiler's "
                               "ticks); use --start-in {:.0f}ms, auto, or now",
                               Seconds(lead), Seconds(result_.lead.least_ns), Seconds(result_.lead.poll_ns),
                               Seconds(result_.lead.warmup_ns), Seconds(result_.lead.tick_ns),
                               static_cast<double>(result_.lead.least_ns) / 1e6)};
    }
  }
  result_.start_unix_ns = (UnixNow() + lead + kMillisecond - 1) / kMillisecond * kMillisecond;
  window.start_unix_ns = result_.start_unix_ns;
  return window;
}

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
          *spec.window.start_unix_ns += correction / kMillisecond * kMillisecond;
        }
        if (spec.window.deliver_from_unix_ns) *spec.window.deliver_from_unix_ns += CorrectionOf(i);
        spec.options = request_.options;
        spec.timeout_ns = request_.timeout_ns;
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
        fmt::format("the daemon on {} does not trace it for you: it is {}'s, or has just ended", node.host,
                    target.process.user.empty() ? fmt::format("uid {}", target.process.uid) : target.process.user);
  }
}

bool JobCapturer::LeadWasRefused() const {
  return result_.start_unix_ns && request_.start == StartMode::kAuto &&
         std::any_of(refusals_.begin(), refusals_.end(),
                     [](const Error& error) { return error.code == ErrorCode::kInvalidArgument; });
}

void JobCapturer::Update(size_t node_idx, const Capture& capture) {
  answered_unix_ns_[node_idx] = UnixNow();
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
    for (int64_t slept = 0; slept < kFollowEvery && !cancelled(); slept += 50 * kMillisecond) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(50 * kMillisecond));
    }
    if (!cancelled()) AskAll();
  }
  while (fetcher_.busy()) {
    if (cancelled()) fetcher_.Cancel();
    std::this_thread::sleep_for(std::chrono::nanoseconds(10 * kMillisecond));
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
    target.reason = fmt::format("could not be fetched: {}; it is on {} still, in capture {}", target.fetch_error,
                                result_.nodes[target.node_idx].host, result_.nodes[target.node_idx].capture_id);
  }
  links_.ForEach(
      result_.nodes, kQuestionNs,
      [&](size_t i) { return !result_.nodes[i].capture_id.empty() && !keep[i] && result_.nodes[i].problem.empty(); },
      [&](size_t i, NodeClient& client, int64_t left_ns) -> Status {
        ASSIGN_OR_RETURN(const Capture ignored, client.CancelCapture(result_.nodes[i].capture_id, left_ns));
        static_cast<void>(ignored);
        return {};
      });
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

std::vector<size_t> JobCapturer::KeptTargets() const {
  std::vector<size_t> kept;
  for (size_t i = 0; i < result_.targets.size(); ++i) {
    if (result_.targets[i].kept()) kept.push_back(i);
  }
  return kept;
}

void JobCapturer::CompareStarts() {
  std::vector<int64_t> starts;
  std::vector<int64_t> fetches;
  for (const JobTarget& target : result_.targets) {
    if (target.delivered_unix_ns) fetches.push_back(*target.delivered_unix_ns - CorrectionOf(target.node_idx));
    if (!target.kept() || !target.facts.start_unix_ns) continue;
    starts.push_back(*target.facts.start_unix_ns - CorrectionOf(target.node_idx));
    result_.clock_error_ns = std::max(result_.clock_error_ns, ErrorOf(target.node_idx));
  }
  const auto spread = [](const std::vector<int64_t>& times) -> std::optional<int64_t> {
    if (times.size() < 2) return std::nullopt;
    const auto [first, last] = std::minmax_element(times.begin(), times.end());
    return *last - *first;
  };
  result_.start_spread_ns = spread(starts);
  result_.fetch_spread_ns = spread(fetches);
}

Status JobCapturer::CaptureAtOnce() {
  CaptureWindow window;
  for (int lead = 0; lead < kMostLeads; ++lead) {
    ASSIGN_OR_RETURN(window, PlanWindow(lead * kLongerLead));
    Start(window);
    if (!LeadWasRefused() || cancelled()) break;
    if (lead + 1 == kMostLeads) break;
    CancelAll();
    Reset();
  }
  // All refused for one reason: that is the answer.
  if (!refusals_.empty() && AllFinal() && KeptTargets().empty() && !fetcher_.busy()) return refusals_.front();
  Show(JobProgress::Phase::kStarted);
  Follow(window);
  CompareStarts();
  RemoveFromNodes();
  return {};
}

std::vector<PollPhase> JobCapturer::Phases(const std::vector<NodeProcesses>& nodes) const {
  std::vector<PollPhase> phases;
  for (const JobTarget& target : result_.targets) {
    const Process* latest = &target.process;
    for (const NodeProcesses& node : nodes) {
      if (node.node_idx != target.node_idx) continue;
      for (const Process& process : node.processes) {
        if (process.id == target.process.id) latest = &process;
      }
    }
    phases.push_back({latest->last_poll_unix_ns - CorrectionOf(target.node_idx), latest->poll_period_ns});
  }
  return phases;
}

void JobCapturer::CaptureSteps() {
  std::vector<NodeProcesses> latest;
  StepClock clock;
  int32_t roundup = std::max(request_.window.roundup, 1);
  for (int attempt = 1;; ++attempt) {
    result_.attempt_count = attempt;
    result_.roundup = roundup;
    const int64_t earliest = UnixNow() + 2 * links_.RoundNs(result_.nodes) + 300 * kMillisecond;
    const std::vector<PollPhase> phases = Phases(latest);
    const Delivery delivery = clock.step_ns > 0 && clock.roundup == roundup ? PlanDelivery(phases, earliest, clock)
                                                                            : PlanDelivery(phases, earliest);
    CaptureWindow window = request_.window;
    window.roundup = roundup;
    if (result_.targets.size() > 1) window.deliver_from_unix_ns = delivery.from_unix_ns;
    Start(window);
    if (!refusals_.empty() && AllFinal() && !fetcher_.busy()) return;
    Show(JobProgress::Phase::kStarted);
    Follow(window);
    CompareStarts();
    std::vector<StepTrace> traces;
    const std::vector<size_t> kept = KeptTargets();
    for (const size_t i : kept) {
      const JobTarget& target = result_.targets[i];
      traces.push_back({target.facts, CorrectionOf(target.node_idx), ErrorOf(target.node_idx)});
    }
    result_.steps = CompareSteps(traces, window.iterations, roundup);
    for (size_t& idx : result_.steps.without_steps) {
      idx = kept[idx];
      result_.targets[idx].reason =
          "is a trace of 500 ms: the process had counted no step when it was asked (no optimizer step yet, or none at "
          "all)";
    }
    RemoveFromNodes();
    const bool whole = kept.size() == result_.targets.size();
    if (result_.steps.verdict != StepAgreement::Verdict::kApart || attempt == kMostAttempts || cancelled() || !whole ||
        request_.window.start_iteration) {
      return;
    }
    const int64_t step_ns = result_.steps.step_ns.value_or(0);
    const int64_t spread = std::max(result_.fetch_spread_ns.value_or(0), delivery.spread_ns);
    clock = {result_.steps.first_start_ns.value_or(0), step_ns, roundup};
    if (request_.choose_roundup) {
      roundup = ChooseRoundup(spread, step_ns, roundup);
    } else if (spread >= step_ns * roundup) {
      result_.steps.reason =
          fmt::format("ranks ask for work {:.1f} s apart, which is more than {} steps", Seconds(spread), roundup);
      return;
    }
    Show(JobProgress::Phase::kRepeating,
         fmt::format("ranks began at different steps ({:.1f} s apart); again from a multiple of {}",
                     Seconds(result_.steps.spread_ns.value_or(0)), roundup));
    Reset();
    latest = links_.Refresh(result_.nodes);
  }
}

Result<JobCaptureResult> JobCapturer::Run() {
  result_.asked_unix_ns = UnixNow();
  result_.group = RandomName();
  result_.window_name = FreeWindowName();
  RETURN_IF_ERROR(Choose());
  Show(JobProgress::Phase::kChosen);
  if (request_.window.mode == CaptureWindow::Mode::kIterations) {
    CaptureSteps();
    if (!refusals_.empty() && KeptTargets().empty()) return refusals_.front();
  } else {
    RETURN_IF_ERROR(CaptureAtOnce());
  }
  result_.cancelled = cancelled();
  result_.finished_unix_ns = UnixNow();
  Show(JobProgress::Phase::kDone);
  return std::move(result_);
}

}  // namespace

size_t JobCaptureResult::kept_count() const {
  return static_cast<size_t>(
      std::count_if(targets.begin(), targets.end(), [](const JobTarget& target) { return target.kept(); }));
}

bool JobCaptureResult::partial() const {
  const bool node_lost =
      std::any_of(nodes.begin(), nodes.end(), [](const JobNodeState& node) { return !node.problem.empty(); });
  return cancelled || node_lost || !missing_ranks.empty() || kept_count() < targets.size() ||
         !steps.without_steps.empty() || steps.verdict == StepAgreement::Verdict::kApart;
}

Result<JobCaptureResult> CaptureJob(const JobCaptureRequest& request) { return JobCapturer(request).Run(); }

}  // namespace lockstep::control
