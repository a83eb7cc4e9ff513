#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "node/proc/job_processes.h"

namespace lockstep::agent {

/// The node's ranks for all who look at them: found once for all, and told as they are for a while. Thread-safe.
class RankList {
 public:
  using Find = std::function<std::vector<proc::JobProcess>()>;
  RankList(Find find, std::chrono::milliseconds fresh_for) : find_(std::move(find)), fresh_for_(fresh_for) {}

  std::vector<proc::JobProcess> Get();

 private:
  using Clock = std::chrono::steady_clock;
  const Find find_;
  const std::chrono::milliseconds fresh_for_;
  Mutex mutex_;
  std::optional<Clock::time_point> found_at_ LOCKSTEP_GUARDED_BY(mutex_);
  std::vector<proc::JobProcess> found_ LOCKSTEP_GUARDED_BY(mutex_);
};

}  // namespace lockstep::agent
