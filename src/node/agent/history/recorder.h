#pragma once

#include <prometheus/metric_family.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/result.h"
#include "node/agent/history/health_watch.h"
#include "node/agent/history/history_file.h"
#include "node/agent/history/history_settings.h"
#include "node/agent/history/sampler.h"

namespace lockstep::agent {

/// The daemon's history of its sensors: writes one look per second to a HistoryFile on a thread of its own, and answers
/// queries. Thread-safe.
class HistoryRecorder {
 public:
  /// Hands all families that there are now to its argument.
  using Visit = std::function<void(const std::function<void(const prometheus::MetricFamily& family)>& take)>;
  struct Options {
    HistorySettings settings;
    std::string path;
    std::string host;
    Visit visit;
    std::function<void(const std::string& line)> log;
  };

  /// Errors: HistoryFile's. Looks from then on.
  static Result<std::unique_ptr<HistoryRecorder>> Open(Options options);
  ~HistoryRecorder();
  HistoryRecorder(const HistoryRecorder&) = delete;
  HistoryRecorder& operator=(const HistoryRecorder&) = delete;

  control::History Ask(const control::HistoryQuery& query) const;
  uint64_t bytes() const { return bytes_; }
  uint64_t limit_bytes() const { return options_.settings.limit_bytes; }

 private:
  HistoryRecorder(Options options, std::unique_ptr<HistoryFile> file);
  void Run(const std::stop_token& stop);
  void Look(int64_t now_unix_ns);

  const Options options_;
  // Used only by the thread that looks, so no other thread waits for its disk.
  std::unique_ptr<HistoryFile> file_;
  HistorySampler sampler_;
  HealthWatch health_;
  int64_t coarse_due_unix_ns_ = 0;
  std::string told_;

  mutable Mutex ask_mutex_;  ///< One answer at a time: its making takes memory.
  mutable Mutex mutex_;
  HistoryView view_ LOCKSTEP_GUARDED_BY(mutex_);
  std::atomic<uint64_t> bytes_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

/// What of a view answers a query at `now_unix_ns`: the fine tier as far back as it goes, the coarse one before it.
control::History AskHistory(const HistoryView& view, const control::HistoryQuery& query, int64_t now_unix_ns);

}  // namespace lockstep::agent
