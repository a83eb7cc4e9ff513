#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "base/mutex.h"
#include "node/agent/job_metrics/job_metrics.h"
#include "node/control/api/stages.h"

namespace lockstep::agent {

/// The newest steps of this node's ranks, in stages and packed, for `lockstep stages --job`. Bounded as
/// node/control/api/stages.h says: the oldest of a rank go first, and what is gone is counted. Thread-safe.
class KeptSteps {
 public:
  /// Adds `meter.new_steps()`.
  void Take(const RankIdentity& identity, const RankMeter& meter);
  /// The process has ended, or begins to record anew.
  void Forget(int32_t pid);

  /// Without what belongs to the node.
  control::NodeStages Ask(const control::StagesQuery& query) const;

 private:
  struct Kept {
    control::RankSteps facts;         ///< Without steps.
    std::string bytes;                ///< Steps one behind another; those that are gone are in front for a while.
    size_t begin = 0;                 ///< Of the oldest that is kept.
    std::deque<uint32_t> sizes = {};  ///< Of each that is kept.
  };
  static void Drop(size_t most_bytes, Kept* kept);

  mutable Mutex mutex_;
  std::map<int32_t, Kept> ranks_ LOCKSTEP_GUARDED_BY(mutex_);  ///< By pid.
};

}  // namespace lockstep::agent
