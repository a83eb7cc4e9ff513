#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/ascii.h"
#include "base/invalid_argument.h"
#include "base/nanoseconds.h"
#include "node/agent/capture/capture_manager_impl.h"
#include "node/agent/capture/capture_select.h"
#include "node/agent/capture/lead.h"
#include "node/agent/capture/random_name.h"
#include "node/agent/capture/trace_name.h"
#include "node/agent/kineto/config_text.h"
#include "node/control/api/capture_risk.h"

namespace lockstep::agent {
namespace {

using control::CaptureWindow;
using control::TargetState;

constexpr int64_t kDayNs = 86'400 * kSecondNs;
constexpr size_t kMaxRunning = 64;
constexpr size_t kMaxTargets = 1024;

Status CheckSpec(const control::CaptureSpec& spec) {
  const bool group_ok = spec.group.size() <= 64 && std::all_of(spec.group.begin(), spec.group.end(), [](char c) {
                          return IsAlphanumeric(c) || c == '_' || c == '-';
                        });
  if (!group_ok) return InvalidArgument("group must be at most 64 letters, digits, '_' or '-'");
  if (spec.timeout_ns < kSecondNs || spec.timeout_ns > kDayNs) return InvalidArgument("timeout_ns must be 1 s to 24 h");
  if (spec.wait_ns < 0 || spec.wait_ns > kDayNs) return InvalidArgument("wait_ns must be 0 to 24 h");
  return {};
}

}  // namespace

bool Show(const TargetRun& run, const TargetPlace& place, control::CaptureTarget* target) {
  const TargetProgress& progress = run.progress;
  if (run.lingers) return false;
  const bool changed = target->state != progress.state() || target->reason != progress.reason() ||
                       target->delivered_unix_ns != progress.delivered_unix_ns() ||
                       target->begun_unix_ns != progress.begun_unix_ns() ||
                       target->missed_start_unix_ns != progress.missed_start_unix_ns();
  if (!changed) return false;
  target->state = progress.state();
  target->reason = progress.reason();
  target->delivered_unix_ns = progress.delivered_unix_ns();
  target->begun_unix_ns = progress.begun_unix_ns();
  target->missed_start_unix_ns = progress.missed_start_unix_ns();
  target->finished_unix_ns = progress.finished_unix_ns();
  if (target->state == TargetState::kDone) {
    target->trace_name = place.trace_name;
    target->trace_bytes = progress.trace_bytes();
  }
  return true;
}

std::string TraceId(const CaptureRecord& record, size_t idx) { return fmt::format("{}-{}", record.capture.id, idx); }

std::string ProfilerOf(const control::Process& process) {
  return process.pid != 0 ? fmt::format("{}-{}", process.pid, process.start_ticks) : process.id;
}

CaptureWindow WindowOf(const CaptureRecord& record, size_t idx) {
  CaptureWindow window = record.capture.spec.window;
  if (record.capture.targets[idx].missed_start_unix_ns) window.start_unix_ns.reset();
  return window;
}

Result<std::string> CaptureManagerImpl::ConfigText(const CaptureRecord& record, size_t idx) const {
  const control::CaptureTarget& target = record.capture.targets[idx];
  const TargetPlace& place = record.places[idx];
  return BuildConfigText({.window = WindowOf(record, idx),
                          .options = record.capture.spec.options,
                          .log_file = place.folder + "/" + place.log_name,
                          .trace_id = TraceId(record, idx),
                          .group_id = record.capture.spec.group,
                          .torch_version = target.process.torch_version,
                          .device_traced = IsDeviceTraced(target.process)});
}

CaptureManagerImpl::Newcomer CaptureManagerImpl::MakeNewcomer(const CaptureRecord& record,
                                                              const control::Process& process, const Instant& now) {
  const CaptureWindow& window = record.capture.spec.window;
  Newcomer newcomer;
  newcomer.target.process = process;
  newcomer.place.trace_name =
      TraceName(process, options_.host, window.start_unix_ns.value_or(record.capture.created_unix_ns));
  const auto refuse = [&](const Error& error) {
    newcomer.error = error;
    newcomer.target.state = TargetState::kRefused;
    newcomer.target.reason = error.ToString();
    newcomer.target.finished_unix_ns = now.wall_ns;
    return newcomer;
  };
  if (window.mode == CaptureWindow::Mode::kIterations && !process.counts_iterations) {
    return refuse({.code = ErrorCode::kFailedPrecondition,
                   .message = "cannot count iterations: its KINETO_USE_DAEMON is empty, so that PyTorch installs no "
                              "optimizer hook; set it to 1, or trace by duration"});
  }
  const std::string risk = control::CaptureRisk(process);
  if (!risk.empty() && !record.capture.spec.allow_unsafe && !options_.allow_unsafe) {
    return refuse(
        {.code = ErrorCode::kFailedPrecondition, .message = fmt::format("{}; {}", risk, control::kCaptureRiskRemedy)});
  }
  if (auto lead = CheckLead({process}, window, now.wall_ns); !lead) return refuse(lead.error());
  const int32_t client_pid = process.client_pids.empty() ? process.pid : process.client_pids.front();
  if (record.foreign_log_file.empty()) {
    auto made = OutputFolder::Make(process, record.capture.id, options_.output_folder);
    if (!made) {
      made.error().message = "no folder for its trace: " + made.error().message;
      return refuse(made.error());
    }
    Note("output folder", made->problem);
    newcomer.place.log_name = newcomer.place.trace_name;
    newcomer.folder = std::move(made->folder);
  } else {
    const size_t slash = record.foreign_log_file.rfind('/');
    newcomer.place.foreign = true;
    newcomer.place.log_name = record.foreign_log_file.substr(slash + 1);
    auto folder = OutputFolder::Foreign(process, record.foreign_log_file.substr(0, slash));
    if (!folder) return refuse(folder.error());
    newcomer.folder = std::move(*folder);
  }
  newcomer.place.folder = newcomer.folder->path();
  newcomer.place.final_name = FinalTracePath("/" + newcomer.place.log_name, client_pid).substr(1);
  if (newcomer.folder->Observe(newcomer.place.final_name).kind != FileObservation::Kind::kNone) {
    return refuse({.code = ErrorCode::kFailedPrecondition,
                   .message = "exists already, or its .tmp does: name another file",
                   .file = newcomer.place.folder + "/" + newcomer.place.final_name});
  }
  return newcomer;
}

void CaptureManagerImpl::Add(CaptureEntry* entry, Newcomer newcomer, const Instant& now) {
  CaptureRecord& record = entry->record;
  const size_t idx = record.capture.targets.size();
  TargetRun run = {
      .progress = TargetProgress(PlanOf(record.capture.spec, newcomer.target.process, newcomer.place), now),
      .folder = std::move(newcomer.folder),
      .token = fmt::format("{}/{}", record.capture.id, idx)};
  if (newcomer.target.state == TargetState::kRefused) run.progress.Refuse(newcomer.target.reason, now);
  Show(run, newcomer.place, &newcomer.target);
  entry->runs.push_back(std::move(run));
  record.capture.targets.push_back(std::move(newcomer.target));
  record.places.push_back(std::move(newcomer.place));
  entry->changed = entry->unsaved = true;
}

Result<control::Capture> CaptureManagerImpl::Start(const control::CaptureSpec& spec, const Caller& caller) {
  return StartAt(spec, caller, nullptr);
}

Result<control::Capture> CaptureManagerImpl::Start(const control::CaptureSpec& spec, const Caller& caller,
                                                   const ForeignOutput& output) {
  RETURN_IF_ERROR(CheckLogFile(output.log_file));
  return StartAt(spec, caller, &output);
}

Result<control::Capture> CaptureManagerImpl::StartAt(const control::CaptureSpec& spec, const Caller& caller,
                                                     const ForeignOutput* output) {
  RETURN_IF_ERROR(CheckSpec(spec));
  const Instant now = Now();
  const std::vector<control::Process> processes = registry_->Processes();
  const Selection selection = Select(processes, spec, caller);
  const int64_t startup_left = options_.startup_wait_ns - (now.monotonic_ns - started_.monotonic_ns);
  const int64_t wait_ns = std::max(spec.wait_ns, startup_left);
  // The processes that are named but not allowed are already registered: waiting for more changes nothing.
  const auto& named = spec.selector;
  const bool is_named = !named.job_id.empty() || !named.pids.empty() || !named.process_ids.empty();
  if (selection.chosen.empty() && (wait_ns <= 0 || (is_named && selection.forbidden_count > 0))) {
    if (selection.forbidden_count > 0) {
      return Error{
          .code = ErrorCode::kPermissionDenied,
          .message = fmt::format("{} processes match that {} may not trace: ask as their user, as root, or as a "
                                 "member of the capture group",
                                 selection.forbidden_count, caller.name.empty() ? "the caller" : caller.name)};
    }
    return Error{.code = ErrorCode::kNotFound, .message = DescribeNoMatch(processes, spec, caller, selection)};
  }
  if (selection.chosen.size() > kMaxTargets) {
    return Error{.code = ErrorCode::kLimitExceeded,
                 .message = fmt::format("{} processes match, and {} can be traced at a time: narrow the selection",
                                        selection.chosen.size(), kMaxTargets)};
  }
  RETURN_IF_ERROR(CheckLead(selection.chosen, spec.window, now.wall_ns));
  {
    const MutexLock lock(mutex_);
    size_t running = 0;
    std::map<std::string, std::string> busy;  // Process -> the capture that it is busy with.
    for (const auto& entry : entries_) {
      running += IsFinal(entry->record.capture.state) ? 0 : 1;
      for (size_t i = 0; i < entry->runs.size(); ++i) {
        if (entry->runs[i].progress.final()) continue;
        busy[ProfilerOf(entry->record.capture.targets[i].process)] = entry->record.capture.id;
      }
    }
    if (running >= kMaxRunning) {
      return Error{.code = ErrorCode::kLimitExceeded,
                   .message = fmt::format("{} captures are running: wait for one to end, or cancel one", running)};
    }
    const auto is_busy = [&](const control::Process& process) { return busy.count(ProfilerOf(process)) > 0; };
    if (!selection.chosen.empty() && std::all_of(selection.chosen.begin(), selection.chosen.end(), is_busy)) {
      return Error{.code = ErrorCode::kFailedPrecondition,
                   .message = fmt::format("all {} that match are busy with another capture ({}): a process traces one "
                                          "request at a time; wait for it, or cancel it",
                                          selection.chosen.size(), busy[ProfilerOf(selection.chosen.front())])};
    }
  }
  auto entry = std::make_unique<CaptureEntry>();
  CaptureRecord& record = entry->record;
  record.caller = caller;
  if (output != nullptr) record.foreign_log_file = output->log_file;
  record.capture.id = RandomName(16);
  record.capture.spec = spec;
  if (record.capture.spec.group.empty()) record.capture.spec.group = record.capture.id;
  record.capture.requested_by = caller.name;
  record.capture.created_unix_ns = now.wall_ns;
  record.capture.state = selection.chosen.empty() ? control::CaptureState::kWaiting : control::CaptureState::kRunning;
  record.wait_until_unix_ns = selection.chosen.empty() ? now.wall_ns + wait_ns : 0;
  // Processes come back one by one after a start of ours; those that are not there yet are waited for.
  const bool whole = IsWholeWorld(selection.chosen) || selection.chosen.size() == spec.selector.process_ids.size() ||
                     (spec.process_limit > 0 && selection.chosen.size() == spec.process_limit);
  record.join_until_unix_ns = startup_left > 0 && !whole ? now.wall_ns + startup_left : 0;
  const auto undo = [&] {
    for (TargetRun& run : entry->runs) {
      if (run.folder != nullptr) run.folder->Remove();
    }
  };
  std::optional<Error> first_error;
  for (const control::Process& process : selection.chosen) {
    Newcomer newcomer = MakeNewcomer(record, process, now);
    if (newcomer.error && !first_error) first_error = newcomer.error;
    Add(entry.get(), std::move(newcomer), now);
    const size_t idx = entry->runs.size() - 1;
    if (entry->runs[idx].progress.final()) continue;
    // What no process can be told is the caller's mistake; what one's version does not know ends that one.
    if (auto text = ConfigText(record, idx); !text) {
      if (idx == 0) {
        undo();
        return text.error();
      }
      entry->runs[idx].progress.Refuse(text.error().message, now);
      Show(entry->runs[idx], record.places[idx], &record.capture.targets[idx]);
    }
  }
  const auto is_final = [](const TargetRun& run) { return run.progress.final(); };
  if (first_error && std::all_of(entry->runs.begin(), entry->runs.end(), is_final)) {
    undo();
    return *first_error;
  }
  control::Capture capture = record.capture;
  {
    // On disk before any process hears of it.
    const MutexLock store_lock(store_mutex_);
    const Status saved = store_->Write(capture.id, ToText(record));
    Note("state", saved ? "" : "captures will not survive a restart: " + saved.error().ToString());
    entry->unsaved = !saved;
  }
  {
    const MutexLock lock(mutex_);
    entries_.push_back(std::move(entry));
  }
  Wake();
  return capture;
}

Result<control::Capture> CaptureManagerImpl::Cancel(const std::string& id, const Caller& caller) {
  ASSIGN_OR_RETURN(const control::Capture before, Get(id, caller));
  const bool may = caller.may_trace_all || std::all_of(before.targets.begin(), before.targets.end(),
                                                       [&](const auto& t) { return caller.MayTrace(t.process); });
  if (!may) {
    return Error{
        .code = ErrorCode::kPermissionDenied,
        .message = "some of its processes are not yours: only root or a member of the capture group may cancel it"};
  }
  std::vector<std::shared_ptr<OutputFolder>> to_remove;
  control::Capture after;
  {
    const MutexLock lock(mutex_);
    CaptureEntry* entry = FindEntry(id);
    if (entry == nullptr) return before;  // Expired in this moment.
    const Instant now = Now();
    control::Capture& capture = entry->record.capture;
    entry->record.discard = true;
    const bool was_final = IsFinal(capture.state);
    for (size_t i = 0; i < entry->runs.size(); ++i) {
      TargetRun& run = entry->runs[i];
      control::CaptureTarget& target = capture.targets[i];
      if (!run.progress.final()) {
        const bool stopped =
            run.progress.state() == TargetState::kQueued &&
            (!run.placed || registry_->Withdraw(target.process.id, run.token) || !registry_->Find(target.process.id));
        if (stopped) {
          run.progress.Cancel("withdrawn before the process fetched it", now);
          Show(run, entry->record.places[i], &target);
        } else if (target.process.tracer == control::Tracer::kSteps) {
          registry_->Stop(target.process.id, TraceId(entry->record, i));
          target.state = TargetState::kCancelled;
          target.reason = "will be stopped where its step ends";
          target.finished_unix_ns = now.wall_ns;
          run.lingers = true;
          continue;
        } else {
          const auto end = run.progress.ExpectedEndUnixNs();
          target.state = TargetState::kCancelled;
          target.reason = end ? fmt::format(
                                    "cannot be stopped in the process: its window ends by itself, about {}; the "
                                    "trace is thrown away",
                                    ClockUtc(*end))
                              : "cannot be stopped in the process: its window ends by itself; the trace is thrown away";
          target.finished_unix_ns = now.wall_ns;
          run.lingers = true;
          continue;
        }
      }
      run.swept = true;
      if (run.folder != nullptr) to_remove.push_back(run.folder);
      target.trace_name.clear();
      target.trace_bytes = 0;
    }
    if (!was_final) {
      capture.state = control::CaptureState::kCancelled;
      capture.reason = "cancelled by " + (caller.name.empty() ? std::string("its user") : caller.name);
      capture.finished_unix_ns = now.wall_ns;
    }
    entry->changed = entry->unsaved = true;
    after = capture;
  }
  for (const auto& folder : to_remove) folder->Remove();
  Wake();
  return after;
}

}  // namespace lockstep::agent
