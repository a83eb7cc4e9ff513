#include "ingest/job/ingest_progress.h"

#include <algorithm>
#include <utility>

namespace lockstep::ingest {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Clock::duration kInterval = std::chrono::milliseconds(100);

}  // namespace

ProgressMeter::ProgressMeter(std::function<void(const IngestProgress&)> on_progress, uint64_t total_bytes,
                             uint32_t file_count, const std::atomic<bool>* cancelled)
    : on_progress_(std::move(on_progress)),
      total_bytes_(total_bytes),
      file_count_(file_count),
      cancelled_(cancelled),
      due_((Clock::now() + kInterval).time_since_epoch().count()) {}

void ProgressMeter::AddBytes(uint64_t consumed_bytes, uint64_t json_bytes) {
  consumed_bytes_.fetch_add(consumed_bytes, std::memory_order_relaxed);
  json_bytes_.fetch_add(json_bytes, std::memory_order_relaxed);
  ReportIfDue();
}

void ProgressMeter::FinishFile() {
  finished_file_count_.fetch_add(1, std::memory_order_relaxed);
  ReportIfDue();
}

void ProgressMeter::Finish() {
  if (!on_progress_) return;
  const MutexLock lock(mutex_);
  Report();
}

void ProgressMeter::ReportIfDue() {
  if (!on_progress_) return;
  const auto now = Clock::now().time_since_epoch();
  if (now.count() < due_.load(std::memory_order_relaxed)) return;
  // Another thread may be reporting, or may just have done so.
  if (!mutex_.try_lock()) return;
  const MutexLock lock(mutex_, std::adopt_lock);
  if (now.count() < due_.load(std::memory_order_relaxed)) return;
  due_.store((now + kInterval).count(), std::memory_order_relaxed);
  Report();
}

void ProgressMeter::Report() {
  on_progress_({.consumed_bytes = std::min(consumed_bytes_.load(std::memory_order_relaxed), total_bytes_),
                .total_bytes = total_bytes_,
                .json_bytes = json_bytes_.load(std::memory_order_relaxed),
                .event_count = event_count_.load(std::memory_order_relaxed),
                .finished_file_count = finished_file_count_.load(std::memory_order_relaxed),
                .file_count = file_count_});
}

Result<size_t> MeteredSource::Read(std::span<char> window) {
  if (meter_->cancelled()) {
    failed_ = true;
    return Error{.code = ErrorCode::kCancelled, .message = "reading was cancelled"};
  }
  auto got = source_->Read(window);
  if (!got) {
    failed_ = true;
    return got;
  }
  const uint64_t consumed = std::min(source_->consumed_bytes(), size_bytes_);
  meter_->AddBytes(consumed - std::min(consumed, reported_bytes_), *got);
  reported_bytes_ = std::max(reported_bytes_, consumed);
  return got;
}

}  // namespace lockstep::ingest
