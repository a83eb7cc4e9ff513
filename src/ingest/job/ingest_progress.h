#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/mutex.h"
#include "ingest/bytes/byte_source.h"
#include "ingest/job/ingest_run.h"

namespace lockstep::ingest {

/// Sums what the worker threads have read, and calls back about ten times a second, one call at a time, from whichever
/// thread comes by.
class ProgressMeter {
 public:
  ProgressMeter(std::function<void(const IngestProgress&)> on_progress, uint64_t total_bytes, uint32_t file_count,
                const std::atomic<bool>* cancelled = nullptr);

  void AddBytes(uint64_t consumed_bytes, uint64_t json_bytes);
  void AddEvents(uint64_t event_count) { event_count_.fetch_add(event_count, std::memory_order_relaxed); }
  void FinishFile();
  /// Whether the caller has cancelled the ingest.
  bool cancelled() const { return cancelled_ != nullptr && cancelled_->load(std::memory_order_relaxed); }
  /// The last call, whatever the time.
  void Finish();

 private:
  void ReportIfDue();
  void Report();

  const std::function<void(const IngestProgress&)> on_progress_;
  const uint64_t total_bytes_;
  const uint32_t file_count_;
  const std::atomic<bool>* const cancelled_;

  std::atomic<uint64_t> consumed_bytes_ = 0;
  std::atomic<uint64_t> json_bytes_ = 0;
  std::atomic<uint64_t> event_count_ = 0;
  std::atomic<uint32_t> finished_file_count_ = 0;

  Mutex mutex_;  // Held during the callback.
  std::atomic<std::chrono::steady_clock::rep> due_;
};

/// A source that tells a meter what passes through it, and remembers whether it failed; it fails with kCancelled once
/// the meter is cancelled. At its end it counts what was never read as consumed, so that the sum reaches the total.
class MeteredSource final : public ByteSource {
 public:
  MeteredSource(std::unique_ptr<ByteSource> source, uint64_t size_bytes, ProgressMeter* meter)
      : source_(std::move(source)), size_bytes_(size_bytes), meter_(meter) {}
  ~MeteredSource() override {
    if (reported_bytes_ < size_bytes_) meter_->AddBytes(size_bytes_ - reported_bytes_, 0);
  }

  Result<size_t> Read(std::span<char> window) override;
  uint64_t consumed_bytes() const override { return source_->consumed_bytes(); }
  uint64_t total_bytes() const override { return source_->total_bytes(); }
  Compression compression() const override { return source_->compression(); }
  bool failed() const { return failed_; }

 private:
  std::unique_ptr<ByteSource> source_;
  uint64_t size_bytes_;
  ProgressMeter* meter_;
  uint64_t reported_bytes_ = 0;
  bool failed_ = false;
};

}  // namespace lockstep::ingest
