#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/nanoseconds.h"
#include "node/agent/capture/capture_manager_impl.h"

namespace lockstep::agent {
namespace {

constexpr size_t kMaxFinished = 1024;

}  // namespace

std::optional<int64_t> CaptureManagerImpl::NextExpiryNs() const {
  const MutexLock lock(mutex_);
  std::optional<int64_t> next;
  for (const auto& entry : entries_) {
    const auto finished = entry->record.capture.finished_unix_ns;
    if (finished) next = std::min(next.value_or(INT64_MAX), *finished + options_.keep_ns);
    if (entry->unsaved) next = std::min(next.value_or(INT64_MAX), Now().wall_ns + 5 * kSecondNs);
  }
  return next;
}

void CaptureManagerImpl::Expire() {
  std::vector<std::shared_ptr<OutputFolder>> to_remove;
  std::vector<std::string> forgotten;
  {
    const MutexLock lock(mutex_);
    const int64_t now = Now().wall_ns;
    std::vector<CaptureEntry*> finished;
    uint64_t total_bytes = 0;
    for (const auto& entry : entries_) {
      const bool lingers =
          std::any_of(entry->runs.begin(), entry->runs.end(), [](const TargetRun& run) { return run.lingers; });
      if (!IsFinal(entry->record.capture.state) || lingers) continue;
      finished.push_back(entry.get());
      for (const auto& target : entry->record.capture.targets) total_bytes += target.trace_bytes;
    }
    std::stable_sort(finished.begin(), finished.end(), [](const CaptureEntry* a, const CaptureEntry* b) {
      return a->record.capture.finished_unix_ns.value_or(0) < b->record.capture.finished_unix_ns.value_or(0);
    });
    for (size_t i = 0; i < finished.size(); ++i) {
      CaptureEntry* entry = finished[i];
      control::Capture& capture = entry->record.capture;
      const bool expired = capture.finished_unix_ns.value_or(0) + options_.keep_ns <= now;
      const bool surplus = finished.size() - i > kMaxFinished;
      // The newest stays, however large: it was asked for just now.
      const bool over_quota = total_bytes > options_.trace_quota_bytes && i + 1 < finished.size();
      if (!expired && !surplus && !over_quota) continue;
      for (size_t t = 0; t < capture.targets.size(); ++t) {
        control::CaptureTarget& target = capture.targets[t];
        total_bytes -= target.trace_bytes;
        counts_.evicted_bytes += target.trace_bytes;
        if (entry->runs[t].folder != nullptr) to_remove.push_back(std::exchange(entry->runs[t].folder, nullptr));
        if (target.trace_bytes == 0) continue;
        target.trace_bytes = 0;
        target.trace_name.clear();
        target.reason = fmt::format("its trace was removed: finished traces may take {} bytes in total",
                                    options_.trace_quota_bytes);
        entry->changed = entry->unsaved = true;
      }
      if (expired || surplus) forgotten.push_back(capture.id);
    }
  }
  if (to_remove.empty() && forgotten.empty()) return;
  for (const auto& folder : to_remove) folder->Remove();
  const MutexLock store_lock(store_mutex_);
  for (const std::string& id : forgotten) {
    const Status removed = store_->Remove(id);
    Note("expiry", removed ? "" : removed.error().ToString());
  }
  const MutexLock lock(mutex_);
  std::erase_if(entries_, [&](const auto& entry) {
    return std::find(forgotten.begin(), forgotten.end(), entry->record.capture.id) != forgotten.end();
  });
}

}  // namespace lockstep::agent
