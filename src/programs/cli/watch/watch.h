#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "analysis/hang/diagnosis.h"
#include "analysis/hang/progress.h"
#include "node/jobs/live_job.h"
#include "programs/cli/live_flags.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/text_flags.h"
#include "programs/cli/watch/continuous_flags.h"

namespace lockstep::cli {

class JobProfiler;
class WatchEvents;

/// `lockstep watch`: follows a job with looks that cost it nothing, learns its rhythm, and when nothing moves for
/// longer than that explains, collects evidence while the ranks are still there. With --every it also captures the job
/// on a schedule, and says when it has become slower.
class WatchCommand : public Subcommand {
 public:
  const char* name() const override { return "watch"; }
  const char* purpose() const override { return "Follow a job, and when it gets stuck say why before it is killed"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  Status ReadFlags();
  Result<int> Follow(jobs::LiveJob& live, Console& console, WatchEvents& events);
  Result<std::unique_ptr<JobProfiler>> MakeProfiler(const std::string& job_id, Console& console, WatchEvents& events);
  void Sleep(int64_t time_ns) const;
  /// Collects and judges; true: it is stuck.
  Result<bool> Judge(jobs::LiveJob& live, const hang::ProgressTracker& tracker, Console& console, WatchEvents& events);

  LiveFlags live_;
  TextFlags text_;
  ContinuousFlags continuous_;
  bool is_continuous_ = false;
  std::string interval_ = "1s";
  int64_t interval_ns_ = 0;
  std::string least_silence_ = "5s";
  int64_t least_silence_ns_ = 0;
  std::string first_silence_ = "30s";
  int64_t first_silence_ns_ = 0;
  std::string for_;
  int64_t for_ns_ = 0;  ///< 0 = without end.
  std::string keep_;
  bool once_ = false;
  bool json_ = false;
};

}  // namespace lockstep::cli
