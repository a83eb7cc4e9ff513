#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "analysis/comparison/run_profile.h"
#include "analysis/profile_history/capture_schedule.h"
#include "analysis/profile_history/history_store.h"
#include "analysis/profile_history/job_history.h"
#include "analysis/profile_history/profile_metrics.h"
#include "programs/cli/capture/capture_output.h"
#include "programs/cli/node_flags.h"
#include "programs/cli/watch/continuous_flags.h"
#include "programs/cli/watch/profiler_events.h"

namespace lockstep::cli {

/// Captures a watched job on a schedule, keeps the figures of the captures, and reports when the job has become slower.
/// Captures and their analysis run on a thread of their own; all else on the caller's.
class JobProfiler {
 public:
  /// Opens the folder. `request` and `input` outlive this. Errors: those of HistoryStore::Open.
  static Result<std::unique_ptr<JobProfiler>> Create(const ContinuousRequest& request, RunInput& input,
                                                     jobs::Nodes nodes, control::CaptureSelector selector,
                                                     Console& console, WatchEvents& events);
  /// Cancels, waits for that, and takes the metrics' file away.
  ~JobProfiler();
  JobProfiler(const JobProfiler&) = delete;
  JobProfiler& operator=(const JobProfiler&) = delete;

  /// What is due: a capture begun, one that is done told. Does not block.
  void Look(profile_history::JobState state);
  /// Ends a capture that is under way, on all nodes, without waiting for that.
  void CallOff() { cancelled_ = true; }
  /// Whether as many captures were made as were asked for.
  bool is_done() const;
  bool is_capturing() const { return work_.valid(); }
  uint64_t regression_count() const { return regression_count_; }
  /// Cancels, tells how it went, and takes the metrics' file away.
  void End();

 private:
  /// What the thread brings.
  struct Captured {
    bool is_busy = false;
    profile_history::CaptureRecord record;
    std::optional<comparison::RunProfile> profile;
    std::string report;
    std::string problem;
  };
  JobProfiler(const ContinuousRequest& request, RunInput& input, jobs::Nodes nodes, control::CaptureSelector selector,
              Console& console, ProfilerEvents events, profile_history::HistoryStore store);

  void Begin();
  // On the thread.
  Captured CaptureAndAnalyse(const std::string& name, int64_t begin_unix_ns);
  Status Analyse(const CaptureReport& report, Captured* captured);
  std::string Compare(const std::string& reference, const std::string& capture, comparison::RunProfile after);

  void Skip(const char* reason, uint64_t* count);
  void TakeCaptured();
  void TakeCompared();
  void WriteMetrics();
  void RemoveMetrics();

  const ContinuousRequest& request_;
  RunInput& input_;  ///< The thread's while it works.
  const jobs::Nodes nodes_;
  const control::CaptureSelector selector_;
  Console& console_;
  ProfilerEvents events_;
  profile_history::HistoryStore store_;
  profile_history::JobHistory history_;
  profile_history::CaptureSchedule schedule_;
  profile_history::CaptureCounts counts_;
  profile_history::KeptBytes kept_;
  uint64_t regression_count_ = 0;  ///< Since this was made.
  std::optional<int64_t> last_success_unix_ns_;
  std::optional<int64_t> last_took_ns_;
  int64_t metrics_written_ns_ = 0;
  bool metrics_failed_ = false;
  std::string told_skip_;  ///< Why the last one was left out; empty: it was not.

  std::atomic<bool> cancelled_ = false;
  std::future<Captured> work_;
  std::string capture_;  ///< The one under way, or told last.

  std::future<std::string> comparing_;                     ///< The comparison's page.
  std::optional<profile_history::Regression> regression_;  ///< Told once that is there.
  std::string report_;
};

}  // namespace lockstep::cli
