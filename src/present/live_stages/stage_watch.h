#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "analysis/frontier/job_stages.h"
#include "base/mutex.h"
#include "base/nanoseconds.h"
#include "base/result.h"
#include "ingest/stage_files/stage_files.h"
#include "node/live/job_view.h"

namespace lockstep::live_stages {

/// What the stages of a job's newest steps say, or why nothing is known of them.
struct JobNews {
  std::string job_id;
  Result<frontier::JobStages> stages;
};

/// Asks nodes for the newest steps of a job's ranks.
using AskSteps = std::function<Result<ingest::StageFiles>(const std::string& job_id, uint64_t last_steps)>;

/// Asks for the stages of the view's jobs that record steps, at most four of them, those with most ranks, and puts what
/// they say into the view.
void AddVerdicts(const AskSteps& ask, live::View* view);

/// A job whose ranks record steps.
struct StagedJob {
  std::string job_id;
  size_t rank_count = 0;
};

struct StageWatchOptions {
  AskSteps ask = {};  ///< Called from one thread; null: nothing is known of stages.
  int64_t interval_ns = kSecondNs;
  std::function<bool()> is_wanted = {};                             ///< Whether somebody looks; null: always.
  std::function<void(const std::vector<JobNews>& news)> tell = {};  ///< Called from that thread. May be null.
};

/// Asks again and again what the stages of jobs' newest steps say. It has a thread of its own, since the answer for a
/// thousand ranks takes longer than a look.
class StageWatch {
 public:
  explicit StageWatch(StageWatchOptions options);
  /// Waits for the answer that is under way.
  ~StageWatch();
  StageWatch(const StageWatch&) = delete;
  StageWatch& operator=(const StageWatch&) = delete;

  /// Takes from the view which jobs have steps now, and puts into it what is known of their stages.
  void Pass(live::View* view);
  /// An answer is awaited: the destructor would wait for it.
  bool is_asking() const;
  /// How many steps of each rank are asked for: of many ranks fewer, so that an answer has some 30,000 at most.
  static uint64_t StepsOf(size_t rank_count);

 private:
  void Run();
  std::optional<std::vector<StagedJob>> WaitForJobs();

  const StageWatchOptions options_;
  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  bool ends_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  bool is_asking_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  int64_t due_ns_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  std::vector<StagedJob> jobs_ LOCKSTEP_GUARDED_BY(mutex_);
  std::map<std::string, live::StageVerdict> verdicts_ LOCKSTEP_GUARDED_BY(mutex_);  ///< By job.
  std::thread thread_;
};

}  // namespace lockstep::live_stages
