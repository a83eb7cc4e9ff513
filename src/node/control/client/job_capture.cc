#include "node/control/client/job_capture.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <utility>

#include "base/nanoseconds.h"
#include "base/now.h"
#include "node/control/api/capture_risk.h"
#include "node/control/client/job_capturer.h"
#include "node/control/client/trace_names.h"

namespace lockstep::control {
namespace {

// Of iterations: the first has yet to learn the steps' length, and where more ranks than cores make the polls late,
// each later one may straddle a multiple once in four (ChooseRoundup).
constexpr int kMostAttempts = 5;
constexpr int kMostLeads = 3;
constexpr int64_t kLongerLead = 3 * kSecondNs;

std::string RandomName() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

}  // namespace

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
    return Error{ErrorCode::kNotFound, fmt::format("none of the {} nodes answered; {}: {}", result_.nodes.size(),
                                                   result_.nodes[0].host, result_.nodes[0].problem)};
  }
  const uint32_t uid = ::geteuid();
  ASSIGN_OR_RETURN(JobChoice choice,
                   ChooseTargets(request_.selector, answers, uid == 0 ? std::nullopt : std::optional<uint32_t>(uid)));
  result_.targets = std::move(choice.targets);
  RETURN_IF_ERROR(CheckRisks());
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

// Before anything is asked of any process: a part of a job is of little use.
Status JobCapturer::CheckRisks() const {
  if (request_.allow_unsafe) return {};
  const JobTarget* first = nullptr;
  size_t count = 0;
  for (const JobTarget& target : result_.targets) {
    if (result_.nodes[target.node_idx].allows_unsafe_captures || CaptureRisk(target.process).empty()) continue;
    if (first == nullptr) first = &target;
    ++count;
  }
  if (first == nullptr) return {};
  const Process& process = first->process;
  const std::string who = process.rank ? fmt::format("rank {}", *process.rank) : fmt::format("pid {}", process.pid);
  return Error{ErrorCode::kFailedPrecondition,
               fmt::format("{}{} on {}: {}; {}", who, count > 1 ? fmt::format(" and {} more", count - 1) : "",
                           result_.nodes[first->node_idx].host, CaptureRisk(process), kCaptureRiskRemedy)};
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
  result_.start_unix_ns = (UnixNow() + lead + kMillisecondNs - 1) / kMillisecondNs * kMillisecondNs;
  window.start_unix_ns = result_.start_unix_ns;
  return window;
}

bool JobCapturer::LeadWasRefused() const {
  return result_.start_unix_ns && request_.start == StartMode::kAuto &&
         std::any_of(refusals_.begin(), refusals_.end(),
                     [](const Error& error) { return error.code == ErrorCode::kInvalidArgument; });
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
    const int64_t earliest = UnixNow() + 2 * links_.RoundNs(result_.nodes) + 300 * kMillisecondNs;
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
          "is a trace of 500 ms, not of steps: the process had not counted a step when it was asked (no optimizer step "
          "yet, or no optimizer)";
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
         fmt::format("ranks began at different steps ({:.1f} s apart); trying again from a multiple of {}",
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
