#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "node/control/api/history.h"
#include "node/live/job_tracker.h"
#include "node/live/node_poller.h"

namespace lockstep::live {

/// What /metrics said at the instant `idx` of a history: its counters and gauges as far as they are kept; no groups, no
/// values of the program's own, no collectors.
NodeReading ReadingAt(const control::History& history, size_t idx);

/// The history of several nodes' daemons, as NodePoller::Look() would have seen it, so that a late viewer knows what
/// came before.
class History {
 public:
  /// The nodes of a NodePoller, in its order.
  explicit History(std::vector<NodePast> nodes) : nodes_(std::move(nodes)) {}

  /// Looks of all nodes, `every_ns` apart, oldest first, each before `until_ns` of the caller's monotonic clock, which
  /// their taken_ns are of; `unix_ns` is the caller's wall clock then. A node of which nothing is known for a span has
  /// an error in its look.
  void Replay(int64_t every_ns, int64_t until_ns,
              const std::function<void(std::vector<NodeLook> looks, int64_t taken_ns, int64_t unix_ns)>& take) const;
  const std::vector<NodePast>& nodes() const { return nodes_; }

 private:
  std::vector<NodePast> nodes_;
};

/// Has `tracker` see what the nodes remember of the last `length_ns`, up to `looks`, which it is to take next. Daemons
/// that know nothing change nothing; a node that has not answered `looks` is not asked.
void Recall(NodePoller* poller, const std::vector<NodeLook>& looks, int64_t length_ns, int64_t deadline_ns,
            JobTracker* tracker);

}  // namespace lockstep::live
