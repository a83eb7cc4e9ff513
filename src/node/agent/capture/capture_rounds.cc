#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/nanoseconds.h"
#include "node/agent/capture/capture_manager_impl.h"
#include "node/agent/capture/capture_select.h"
#include "node/agent/capture/process_view.h"

namespace lockstep::agent {
namespace {

using control::CaptureState;
using control::TargetState;

constexpr auto kRoundTime = std::chrono::milliseconds(200);

bool IsBeforeFile(TargetState state) { return state == TargetState::kQueued; }

}  // namespace

void CaptureManagerImpl::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const bool active = Round();
    const std::optional<int64_t> expiry = NextExpiryNs();
    MutexLock lock(events_mutex_);
    const auto woken = [&]() LOCKSTEP_REQUIRES(events_mutex_) { return woken_ || stop.stop_requested(); };
    if (active) {
      wake_.wait_for(lock, kRoundTime, woken);
    } else if (expiry) {
      // At most an hour: wall clocks are set.
      const int64_t wait = std::clamp<int64_t>(*expiry - Now().wall_ns, kSecondNs / 100, 3600 * kSecondNs);
      wake_.wait_for(lock, std::chrono::nanoseconds(wait), woken);
    } else {
      wake_.wait(lock, woken);
    }
    woken_ = false;
  }
  SaveAndTell();
}

bool CaptureManagerImpl::Round() {
  TakeEvents(Now());
  Join();
  std::vector<Look> looks = Gather();
  for (Look& look : looks) LookAt(&look);
  bool active = false;
  {
    const MutexLock lock(mutex_);
    const Instant now = Now();
    for (const Look& look : looks) Apply(look, now);
  }
  PlaceOffers(Now());
  {
    const MutexLock lock(mutex_);
    const Instant now = Now();
    for (const auto& entry : entries_) {
      Settle(entry.get(), now);
      active = active || !IsFinal(entry->record.capture.state) ||
               std::any_of(entry->runs.begin(), entry->runs.end(), [](const TargetRun& r) { return r.lingers; });
    }
  }
  Sweep();
  SaveAndTell();
  Expire();
  return active;
}

void CaptureManagerImpl::TakeEvents(const Instant& now) {
  std::deque<RegistryEvent> events;
  {
    const MutexLock lock(events_mutex_);
    events.swap(events_);
  }
  if (events.empty()) return;
  const MutexLock lock(mutex_);
  for (const RegistryEvent& event : events) {
    // Those that say no more are sent for processes that live, too: to make room for others.
    if (event.kind == RegistryEvent::Kind::kEnded && (event.end.signal || event.end.exit_status))
      NoteEnd(event.process_id, event.end);
    if (event.kind != RegistryEvent::Kind::kDelivered) continue;  // The rest is seen by looking.
    const size_t slash = event.token.find('/');
    CaptureEntry* entry = FindEntry(event.token.substr(0, slash));
    if (entry == nullptr) continue;
    for (TargetRun& run : entry->runs) {
      if (run.token == event.token) run.progress.Delivered(event.unix_ns, now);
    }
  }
}

void CaptureManagerImpl::NoteEnd(const std::string& process_id, const control::ProcessEnd& end) {
  bool is_within = false;
  bool is_after = false;
  for (const auto& entry : entries_) {
    for (size_t i = 0; i < entry->runs.size(); ++i) {
      control::CaptureTarget& target = entry->record.capture.targets[i];
      TargetRun& run = entry->runs[i];
      if (target.process.id != process_id || run.end) continue;
      run.end = end;
      is_within = is_within || !run.progress.final();  // Apply says so in the capture.
      const int64_t since_ns = end.unix_ns - target.finished_unix_ns.value_or(0);
      if (!run.progress.final() || since_ns > control::kWatchedAfterNs) continue;
      is_after = true;
      target.end = end;
      entry->changed = entry->unsaved = true;
    }
  }
  if (!end.IsDeath()) return;
  counts_.deaths_within += is_within ? 1 : 0;
  counts_.deaths_after += is_after && !is_within ? 1 : 0;
}

void CaptureManagerImpl::TakeBackOfJob(CaptureEntry* entry, size_t idx, const Instant& now) {
  CaptureRecord& record = entry->record;
  const control::Process& dead = record.capture.targets[idx].process;
  const std::string who = dead.rank ? fmt::format("rank {}", *dead.rank) : fmt::format("pid {}", dead.pid);
  // A job that has lost a rank does not do what was to be traced. Kineto cannot be stopped once it has the request.
  for (size_t i = 0; i < entry->runs.size(); ++i) {
    TargetRun& run = entry->runs[i];
    const control::Process& other = record.capture.targets[i].process;
    if (run.progress.final() || !control::IsSameJob(dead, other)) continue;
    if (run.progress.state() != TargetState::kQueued) {
      registry_->Stop(other.id, TraceId(record, i));
      continue;
    }
    if (run.placed && !registry_->Withdraw(other.id, run.token) && registry_->Find(other.id)) continue;
    run.progress.Cancel(fmt::format("withdrawn, because {} of its job {}", who, EndWords(*entry->runs[idx].end)), now);
    if (Show(run, record.places[i], &record.capture.targets[i])) entry->changed = entry->unsaved = true;
  }
}

void CaptureManagerImpl::Join() {
  struct Open {
    std::string id;
    CaptureRecord record;
  };
  std::vector<Open> open;
  {
    const MutexLock lock(mutex_);
    const int64_t now = Now().wall_ns;
    for (const auto& entry : entries_) {
      const CaptureRecord& record = entry->record;
      if (IsFinal(record.capture.state)) continue;
      if (record.capture.state == CaptureState::kWaiting || record.join_until_unix_ns > now) {
        open.push_back({record.capture.id, record});
      }
    }
  }
  if (open.empty()) return;
  const std::vector<control::Process> processes = registry_->Processes();
  for (const Open& capture : open) {
    const Selection selection = Select(processes, capture.record.capture.spec, capture.record.caller);
    std::set<std::string> known;
    for (const auto& target : capture.record.capture.targets) known.insert(ProfilerOf(target.process));
    std::vector<Newcomer> newcomers;
    for (const control::Process& process : selection.chosen) {
      if (known.count(ProfilerOf(process)) > 0 || known.size() + newcomers.size() >= 1024) continue;
      newcomers.push_back(MakeNewcomer(capture.record, process, Now()));
    }
    const bool whole = IsWholeWorld(selection.chosen);
    if (newcomers.empty() && !whole) continue;
    const MutexLock lock(mutex_);
    CaptureEntry* entry = FindEntry(capture.id);
    if (entry == nullptr || IsFinal(entry->record.capture.state)) {
      for (Newcomer& newcomer : newcomers) {
        if (newcomer.folder != nullptr) newcomer.folder->Remove();
      }
      continue;
    }
    const Instant now = Now();
    if (entry->record.capture.state == CaptureState::kWaiting && !newcomers.empty()) {
      entry->record.capture.state = CaptureState::kRunning;
      entry->record.capture.reason.clear();
      // The others of a job that has just started or come back register within a poll of the first.
      const int64_t settle = newcomers.front().target.process.poll_period_ns + kSecondNs;
      entry->record.join_until_unix_ns = std::max(entry->record.join_until_unix_ns, now.wall_ns + settle);
    }
    for (Newcomer& newcomer : newcomers) Add(entry, std::move(newcomer), now);
    if (whole) entry->record.join_until_unix_ns = 0;
  }
}

std::vector<CaptureManagerImpl::Look> CaptureManagerImpl::Gather() const {
  const MutexLock lock(mutex_);
  std::vector<Look> looks;
  for (const auto& entry : entries_) {
    for (size_t i = 0; i < entry->runs.size(); ++i) {
      const TargetRun& run = entry->runs[i];
      if (run.progress.final()) continue;
      // A request that no process has fetched has no file, unless an earlier daemon handed it over.
      const bool file_matters = !IsBeforeFile(run.progress.state()) || run.restored || run.placed || run.has_leftover;
      looks.push_back({.capture_id = entry->record.capture.id,
                       .idx = i,
                       .process = entry->record.capture.targets[i].process,
                       .folder = file_matters ? run.folder : nullptr,
                       .final_name = entry->record.places[i].final_name,
                       .trace_id = TraceId(entry->record, i),
                       .has_leftover = run.has_leftover});
    }
  }
  return looks;
}

void CaptureManagerImpl::LookAt(Look* look) const {
  const auto process = registry_->Find(look->process.id);
  if (process) {
    look->facts = {.registered = true,
                   .last_poll_unix_ns = process->last_poll_unix_ns,
                   .poll_period_ns = process->poll_period_ns,
                   .busy = process->state == control::ProcessState::kTracing,
                   .silent = process->state == control::ProcessState::kSilent};
    const std::string note = registry_->Note(look->process.id);
    const std::string waits = look->trace_id + " waits ";
    const std::string refused = look->trace_id + " refused ";
    if (note.starts_with(waits)) look->facts.waits_for = note.substr(look->trace_id.size() + 1);
    if (note.starts_with(refused)) look->facts.refusal = note.substr(refused.size());
  }
  look->ended = HasEnded(look->process).value_or(false);
  // After the question whether it has ended: a file that it renamed last is then seen.
  if (look->folder != nullptr) {
    if (look->has_leftover) look->folder->RemoveUnfinished(look->final_name);
    look->file = look->folder->Observe(look->final_name);
  } else {
    look->file.kind = FileObservation::Kind::kNoFolder;
  }
}

void CaptureManagerImpl::Apply(const Look& look, const Instant& now) {
  CaptureEntry* entry = FindEntry(look.capture_id);
  if (entry == nullptr || look.idx >= entry->runs.size()) return;
  TargetRun& run = entry->runs[look.idx];
  control::CaptureTarget& target = entry->record.capture.targets[look.idx];
  TargetProgress& progress = run.progress;
  const bool was_final = progress.final();
  if (look.ended && !run.end) {
    // The registry reports how it ended, a moment before or after; if the registry does not know, this is not waited
    // for.
    if (!run.end_seen_ns) run.end_seen_ns = now.monotonic_ns;
    if (now.monotonic_ns - *run.end_seen_ns < kSecondNs) return;
    run.end = control::ProcessEnd{.unix_ns = now.wall_ns};
  }
  if (run.folder == nullptr && look.ended) {
    progress.Ended(*run.end, now);
  } else if (run.folder == nullptr) {
    progress.Refuse("the folder for its trace was removed, with its container or by a cleaner of /tmp", now);
  }
  if (look.folder != nullptr) progress.Observed(look.file, now);
  if (look.ended) progress.Ended(*run.end, now);
  progress.Polled(look.facts, now);
  progress.Tick(now);
  if (look.has_leftover) run.has_leftover = false;
  if (progress.TakeAskAgain()) {
    registry_->Withdraw(look.process.id, run.token);  // It forgets that the process was asked.
    run.placed = false;
    run.has_leftover = true;
  }
  if (progress.WantsWithdrawal()) GiveUp(&run, look.process, now);
  if (!was_final && progress.final() && progress.disk_was_full()) ++counts_.disk_full_count;
  // The capture no longer waits for it. A tracer can be told to stop; with Kineto this does nothing.
  if (progress.state() == TargetState::kTimedOut) registry_->Stop(look.process.id, look.trace_id);
  if (Show(run, entry->record.places[look.idx], &target)) entry->changed = entry->unsaved = true;
  if (!run.end || target.end || !progress.final()) return;
  target.end = run.end;
  entry->changed = entry->unsaved = true;
  if (run.end->IsDeath()) TakeBackOfJob(entry, look.idx, now);
}

void CaptureManagerImpl::GiveUp(TargetRun* run, const control::Process& process, const Instant& now) {
  const bool taken_back =
      !run->placed || registry_->Withdraw(process.id, run->token) || !registry_->Find(process.id).has_value();
  if (!taken_back) {
    // Handed over in this moment: the event is on its way. Not for ever, whatever became of it.
    if (!run->withdrawal_failed_ns) run->withdrawal_failed_ns = now.monotonic_ns;
    if (now.monotonic_ns - *run->withdrawal_failed_ns < 5 * kSecondNs) return;
  }
  run->progress.GiveUp(now);
}

void CaptureManagerImpl::PlaceOffers(const Instant& now) {
  const MutexLock lock(mutex_);
  const bool settling = now.monotonic_ns - started_.monotonic_ns < options_.restored_wait_ns;
  // An earlier daemon may have handed it over in its last moment. Where there is a common start no time can be lost.
  const auto may_be_pending = [&](const TargetRun& run) {
    return settling && run.restored && run.progress.StartAfterDeliveryNs() > 0;
  };
  std::map<std::string, std::string> taken;  // Process -> capture.
  for (const auto& entry : entries_) {
    for (size_t i = 0; i < entry->runs.size(); ++i) {
      const TargetRun& run = entry->runs[i];
      const bool holds = run.placed || run.progress.state() != TargetState::kQueued || may_be_pending(run);
      if (!run.progress.final() && holds)
        taken[ProfilerOf(entry->record.capture.targets[i].process)] = entry->record.capture.id;
    }
  }
  for (const auto& entry : entries_) {
    CaptureRecord& record = entry->record;
    for (size_t i = 0; i < entry->runs.size(); ++i) {
      TargetRun& run = entry->runs[i];
      control::CaptureTarget& target = record.capture.targets[i];
      if (run.placed || run.progress.final() || run.progress.state() != TargetState::kQueued) continue;
      if (run.has_leftover || may_be_pending(run)) continue;
      if (const auto other = taken.find(ProfilerOf(target.process)); other != taken.end()) {
        run.progress.WaitsFor("waits for the end of capture " + other->second + ", which the process is still serving",
                              now);
        if (Show(run, record.places[i], &target)) entry->changed = entry->unsaved = true;
        continue;
      }
      taken[ProfilerOf(target.process)] = record.capture.id;
      auto text = ConfigText(record, i);
      Status placed;
      if (!text) {
        run.progress.Refuse(text.error().message, now);
      } else {
        const control::CaptureWindow window = WindowOf(record, i);
        const bool iterations = window.mode == control::CaptureWindow::Mode::kIterations;
        placed = registry_->Place(
            target.process.id, Offer{.token = run.token,
                                     .text = std::move(*text),
                                     .deliver_from_unix_ns = window.deliver_from_unix_ns.value_or(0),
                                     .pending_until_unix_ns = iterations ? now.wall_ns + record.capture.spec.timeout_ns
                                                                         : window.start_unix_ns.value_or(0),
                                     .start_after_ns = run.progress.StartAfterDeliveryNs()});
        run.placed = placed.has_value();
        if (!placed && placed.error().code == ErrorCode::kFailedPrecondition) {
          run.progress.WaitsFor("waits for another request that the process has not fetched yet", now);
        }
      }
      if (Show(run, record.places[i], &target)) entry->changed = entry->unsaved = true;
    }
  }
}

void CaptureManagerImpl::Settle(CaptureEntry* entry, const Instant& now) {
  CaptureRecord& record = entry->record;
  control::Capture& capture = record.capture;
  if (IsFinal(capture.state)) return;
  const auto finish = [&](CaptureState state, std::string reason) {
    capture.state = state;
    capture.reason = std::move(reason);
    capture.finished_unix_ns = now.wall_ns;
    entry->changed = entry->unsaved = true;
  };
  if (capture.targets.empty()) {
    if (now.wall_ns < record.wait_until_unix_ns) return;
    const auto processes = registry_->Processes();
    const Selection selection = Select(processes, capture.spec, record.caller);
    finish(CaptureState::kFailed, DescribeNoMatch(processes, capture.spec, record.caller, selection));
    return;
  }
  if (record.join_until_unix_ns > now.wall_ns) return;
  size_t done = 0, cancelled = 0;
  const control::CaptureTarget* first_lost = nullptr;
  for (const control::CaptureTarget& target : capture.targets) {
    if (!IsFinal(target.state)) return;
    done += target.state == TargetState::kDone ? 1 : 0;
    cancelled += target.state == TargetState::kCancelled ? 1 : 0;
    if (target.state != TargetState::kDone && first_lost == nullptr) first_lost = &target;
  }
  if (first_lost == nullptr) return finish(CaptureState::kDone, "");
  const control::Process& process = first_lost->process;
  const std::string who = process.rank ? fmt::format("rank {}", *process.rank) : fmt::format("process {}", process.pid);
  std::string reason = fmt::format("{} of {} traced; {}: {}", done, capture.targets.size(), who, first_lost->reason);
  if (cancelled == capture.targets.size()) return finish(CaptureState::kCancelled, std::move(reason));
  finish(done > 0 ? CaptureState::kPartial : CaptureState::kFailed, std::move(reason));
}

void CaptureManagerImpl::Sweep() {
  std::vector<std::shared_ptr<OutputFolder>> to_remove;
  {
    const MutexLock lock(mutex_);
    for (const auto& entry : entries_) {
      for (size_t i = 0; i < entry->runs.size(); ++i) {
        TargetRun& run = entry->runs[i];
        if (run.swept || !run.progress.final()) continue;
        run.swept = true;
        const bool lingered = std::exchange(run.lingers, false);
        // The registry forgets that the process was asked, where its profiler was never seen busy.
        if (run.placed) registry_->Withdraw(entry->record.capture.targets[i].process.id, run.token);
        const TargetState state = run.progress.state();
        // One that was handed over may still come: its folder goes with the capture.
        const bool may_come = state == TargetState::kTimedOut && run.progress.delivered_unix_ns().has_value();
        const bool keep = state == TargetState::kDone || may_come;
        if (run.folder != nullptr && (!keep || lingered || entry->record.discard)) to_remove.push_back(run.folder);
      }
    }
  }
  for (const auto& folder : to_remove) folder->Remove();
}

void CaptureManagerImpl::SaveAndTell() {
  struct Change {
    std::string id;
    std::string text = {};
    control::Capture capture = {};
    bool save = false;
    bool tell = false;
  };
  std::vector<Change> changes;
  std::vector<std::shared_ptr<Listener>> listeners;
  {
    const MutexLock lock(mutex_);
    std::erase_if(listeners_, [](const auto& listener) { return listener.use_count() == 1; });
    listeners = listeners_;
    for (const auto& entry : entries_) {
      if (!entry->unsaved && !entry->changed) continue;
      Change change = {.id = entry->record.capture.id, .save = entry->unsaved, .tell = entry->changed};
      if (change.save) change.text = ToText(entry->record);
      if (change.tell) change.capture = entry->record.capture;
      entry->unsaved = entry->changed = false;
      changes.push_back(std::move(change));
    }
  }
  for (const Change& change : changes) {
    if (change.save) {
      const Status saved = [&] {
        const MutexLock store_lock(store_mutex_);
        return store_->Write(change.id, change.text);
      }();
      Note("state", saved ? "" : "captures will not survive a restart: " + saved.error().ToString());
      if (!saved) {
        const MutexLock lock(mutex_);
        if (CaptureEntry* entry = FindEntry(change.id)) entry->unsaved = true;
      }
    }
    if (!change.tell) continue;
    for (const auto& listener : listeners) {
      if (listener->id != change.id) continue;
      const std::lock_guard call_lock(listener->mutex);
      if (const auto call = listener->call) call(change.capture);
    }
  }
}

}  // namespace lockstep::agent
