#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "node/live/job_view.h"
#include "node/live/node_poller.h"

namespace lockstep::live {

struct NodeTrack;

/// Makes a view of successive looks: rates from the growth of counters, ages, who waits for whom. A counter that goes
/// back has restarted: it has no rate until it has grown again. One thread.
class JobTracker {
 public:
  /// Rates are over the last `window_ns`, or over the last two looks where they are further apart. `is_whole_job`: the
  /// nodes are all that the job has, so that a rank on none of them is missing.
  JobTracker(int64_t window_ns, bool is_whole_job);
  ~JobTracker();

  /// `looks`: always the same nodes in the same order. What a node that does not answer said last stays, marked,
  /// until those that answer know better: its ranks run there, or the job has ended or is smaller now.
  /// Cost: O(series), whatever came before.
  View Take(std::vector<NodeLook> looks, int64_t now_ns, int64_t now_unix_ns);
  /// The same for earlier looks that a daemon recorded: they add to rates and histories, but do not count in
  /// View::look_count.
  void Recall(std::vector<NodeLook> looks, int64_t now_ns, int64_t now_unix_ns);

 private:
  struct JobTrack {
    std::set<std::string> seen_ranks;  ///< All that were there while we looked.
    std::set<size_t> nodes;            ///< That had some of them.
    std::vector<int64_t> step_history;
  };

  void ForgetTheDead(int64_t now_ns);

  const int64_t window_ns_;
  const bool is_whole_job_;
  size_t look_count_ = 0;
  std::vector<std::unique_ptr<NodeTrack>> nodes_;
  std::map<std::string, JobTrack> jobs_;
};

}  // namespace lockstep::live
