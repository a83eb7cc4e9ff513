#include "node/agent/capture/capture_manager.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "base/timespec.h"
#include "node/agent/capture/capture_manager_impl.h"
#include "node/agent/capture/lead.h"
#include "node/agent/capture/process_view.h"
#include "node/agent/kineto/config_text.h"

namespace lockstep::agent {
namespace {

Error NoCapture(const std::string& id) {
  return Error{.code = ErrorCode::kNotFound,
               .message = fmt::format("no capture {} is known here; finished captures are kept for a limited time",
                                      id.size() <= 64 ? id : id.substr(0, 64))};
}

}  // namespace

Instant Now() { return {.wall_ns = ClockNs(CLOCK_REALTIME), .monotonic_ns = ClockNs(CLOCK_MONOTONIC)}; }

Result<std::unique_ptr<CaptureManager>> CaptureManager::Create(const CaptureManagerOptions& options,
                                                               Registry* registry) {
  ASSIGN_OR_RETURN(std::unique_ptr<CaptureStore> store, CaptureStore::Open(options.state_folder));
  auto manager = std::make_unique<CaptureManagerImpl>(options, registry, std::move(store));
  manager->Begin();
  return std::unique_ptr<CaptureManager>(std::move(manager));
}

CaptureManagerImpl::CaptureManagerImpl(const CaptureManagerOptions& options, Registry* registry,
                                       std::unique_ptr<CaptureStore> store)
    : options_(options), registry_(registry), started_(Now()), store_(std::move(store)) {}

CaptureManagerImpl::~CaptureManagerImpl() {
  registry_->Listen(nullptr);
  thread_.request_stop();
  Wake();
  if (thread_.joinable()) thread_.join();
}

void CaptureManagerImpl::Begin() {
  Load();
  registry_->Listen([this](const RegistryEvent& event) {
    {
      const MutexLock lock(events_mutex_);
      events_.push_back(event);
      woken_ = true;
    }
    wake_.notify_one();
  });
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

void CaptureManagerImpl::Wake() {
  {
    const MutexLock lock(events_mutex_);
    woken_ = true;
  }
  wake_.notify_one();
}

void CaptureManagerImpl::Load() {
  const MutexLock store_lock(store_mutex_);
  CaptureStore::Loaded loaded = store_->Load();
  const Instant now = Now();
  std::vector<std::unique_ptr<CaptureEntry>> entries;
  for (const CaptureStore::Entry& stored : loaded.entries) {
    auto record = ReadRecord(stored.text);
    if (record && record->capture.id != stored.id) {
      record = Error{.code = ErrorCode::kCorruptData, .message = "holds the capture " + record->capture.id};
    }
    if (!record) {
      loaded.problems.push_back(store_->SetAside(stored.id, record.error().message));
      continue;
    }
    auto entry = std::make_unique<CaptureEntry>();
    entry->record = std::move(*record);
    TakeUp(entry.get(), now);
    entries.push_back(std::move(entry));
  }
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a->record.capture.created_unix_ns < b->record.capture.created_unix_ns;
  });
  const MutexLock lock(mutex_);
  entries_ = std::move(entries);
  for (size_t i = 0; i < loaded.problems.size(); ++i) problems_[fmt::format("state {}", i)] = loaded.problems[i];
}

void CaptureManagerImpl::TakeUp(CaptureEntry* entry, const Instant& now) {
  CaptureRecord& record = entry->record;
  for (size_t i = 0; i < record.capture.targets.size(); ++i) {
    control::CaptureTarget& target = record.capture.targets[i];
    const bool was_final = IsFinal(target.state);
    TargetRun run = {
        .progress = TargetProgress(PlanOf(record.capture.spec, target.process, record.places[i]), now, target),
        .folder = nullptr,
        .token = fmt::format("{}/{}", record.capture.id, i)};
    const std::string& folder = record.places[i].folder;
    if (!folder.empty()) {
      if (auto reopened = OutputFolder::Reopen(target.process, folder, record.places[i].foreign))
        run.folder = std::move(*reopened);
    }
    run.restored = !was_final;
    run.swept = was_final && (target.state == control::TargetState::kDone || run.folder == nullptr) && !record.discard;
    entry->runs.push_back(std::move(run));
  }
}

TargetPlan PlanOf(const control::CaptureSpec& spec, const control::Process& process, const TargetPlace& place) {
  const control::CaptureWindow& window = spec.window;
  return {.mode = window.mode,
          .duration_ns = window.duration_ns,
          .warmup_ns = WarmupNs(window, IsDeviceTraced(process)),
          .start_unix_ns = window.mode == control::CaptureWindow::Mode::kDuration ? window.start_unix_ns : std::nullopt,
          .deliver_from_unix_ns = window.deliver_from_unix_ns,
          .warmup_iterations = window.warmup_iterations,
          .timeout_ns = spec.timeout_ns,
          .at_steps = process.tracer == control::Tracer::kSteps,
          .may_ask_again = !place.foreign,
          .torch_release = TorchRelease(process.torch_version)};
}

CaptureEntry* CaptureManagerImpl::FindEntry(const std::string& id) const {
  for (const auto& entry : entries_) {
    if (entry->record.capture.id == id) return entry.get();
  }
  return nullptr;
}

bool CaptureManagerImpl::MaySee(const CaptureEntry& entry, const Caller& caller) {
  if (caller.may_trace_all) return true;
  const CaptureRecord& record = entry.record;
  if (caller.uid && record.caller.uid == caller.uid) return true;
  const auto& targets = record.capture.targets;
  return !targets.empty() && std::all_of(targets.begin(), targets.end(), [&](const control::CaptureTarget& target) {
    return caller.MayTrace(target.process);
  });
}

std::vector<control::Capture> CaptureManagerImpl::List(const Caller& caller) const {
  const MutexLock lock(mutex_);
  std::vector<control::Capture> captures;
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    if (MaySee(**entry, caller)) captures.push_back((*entry)->record.capture);
  }
  return captures;
}

Result<control::Capture> CaptureManagerImpl::Get(const std::string& id, const Caller& caller) const {
  const MutexLock lock(mutex_);
  const CaptureEntry* entry = FindEntry(id);
  if (entry == nullptr || !MaySee(*entry, caller)) return NoCapture(id);  // Whose it is, is not told.
  return entry->record.capture;
}

Result<OpenTrace> CaptureManagerImpl::Open(const std::string& id, const std::string& trace_name,
                                           const Caller& caller) const {
  std::shared_ptr<OutputFolder> folder;
  std::string final_name;
  {
    const MutexLock lock(mutex_);
    const CaptureEntry* entry = FindEntry(id);
    if (entry == nullptr || !MaySee(*entry, caller)) return NoCapture(id);
    // Names are compared, never used: what is opened has the name that was made here.
    const auto& targets = entry->record.capture.targets;
    for (size_t i = 0; i < targets.size(); ++i) {
      if (trace_name.empty() || targets[i].trace_name != trace_name) continue;
      if (!caller.MayTrace(targets[i].process)) {
        return Error{.code = ErrorCode::kPermissionDenied,
                     .message = fmt::format("the trace is of uid {}", targets[i].process.uid)};
      }
      folder = entry->runs[i].folder;
      final_name = entry->record.places[i].final_name;
    }
  }
  if (final_name.empty()) {
    return Error{.code = ErrorCode::kNotFound, .message = "the capture has no trace of that name"};
  }
  if (folder == nullptr) {
    return Error{.code = ErrorCode::kNotFound,
                 .message = "the trace's folder was removed with its container while the daemon was down"};
  }
  return folder->Open(final_name);
}

std::shared_ptr<void> CaptureManagerImpl::Watch(const std::string& id,
                                                std::function<void(const control::Capture&)> listener) {
  auto slot = std::make_shared<Listener>();
  slot->id = id;
  slot->call = std::move(listener);
  {
    const MutexLock lock(mutex_);
    std::erase_if(listeners_, [](const auto& other) { return other.use_count() == 1; });
    listeners_.push_back(slot);
  }
  // Shared with listeners_: a call may be under way when the handle goes, and is waited for then.
  return std::shared_ptr<void>(slot.get(), [slot](void*) {
    const std::lock_guard lock(slot->mutex);
    slot->call = nullptr;
  });
}

std::vector<std::string> CaptureManagerImpl::Problems() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> problems;
  for (const auto& [key, problem] : problems_) problems.push_back(problem);
  return problems;
}

CaptureCounts CaptureManagerImpl::Counts() const {
  const MutexLock lock(mutex_);
  CaptureCounts counts = counts_;
  for (const auto& entry : entries_) {
    for (const auto& target : entry->record.capture.targets) counts.stored_bytes += target.trace_bytes;
  }
  return counts;
}

void CaptureManagerImpl::Note(const std::string& key, const std::string& problem) const {
  const MutexLock lock(mutex_);
  if (problem.empty()) {
    problems_.erase(key);
  } else if (problems_.size() < 64) {
    problems_[key] = problem;
  }
}

}  // namespace lockstep::agent
