#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analysis/profile_history/job_history.h"
#include "analysis/profile_history/profile_metrics.h"
#include "programs/cli/watch/watch_events.h"

namespace lockstep::cli {

/// What `lockstep watch --every` says besides (lockstep.watch/1, docs/json.md).
class ProfilerEvents {
 public:
  explicit ProfilerEvents(WatchEvents& events) : events_(events) {}

  void Begin(const std::string& folder, int64_t every_ns, uint64_t budget_bytes, size_t past_count,
             size_t skipped_line_count);
  void Captured(const profile_history::CaptureRecord& record, bool is_warm_up, const std::string& report);
  void Skipped(const char* reason);  ///< "silent", "busy", "overrun".
  void Regressed(const std::string& capture, const profile_history::Regression& regression, const std::string& report,
                 const std::string& comparison);
  /// `how`: "recovered", "accepted".
  void Over(const char* how, const std::string& capture, const profile_history::FigureChange& change);
  void Problem(const std::string& problem);  ///< The folder or the metrics' file cannot be written.
  void End(const profile_history::CaptureCounts& counts, uint64_t regression_count,
           const profile_history::KeptBytes& kept, const std::string& folder);

 private:
  WatchEvents& events_;
};

}  // namespace lockstep::cli
