#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "node/control/api/history.h"
#include "node/control/client/http_connection.h"
#include "node/control/client/node_client.h"
#include "node/live/asking_threads.h"
#include "node/live/node_reading.h"

namespace lockstep::live {

/// One look at one node.
struct NodeLook {
  std::string host;     ///< As the daemon calls it, or as it was asked for.
  std::string place;    ///< How it is reached.
  bool is_news = true;  ///< False: it answered last time, and was not asked yet or its answer is on the way.
  std::optional<Error> error;
  int64_t taken_ns = 0;                    ///< When the answer had come, by the caller's monotonic clock.
  std::optional<int64_t> clock_offset_ns;  ///< The node's wall clock minus the caller's; nullopt: not measured yet.
  NodeReading reading;                     ///< Empty with an error.
};

/// The history of one node's daemon (GET /api/v1/history).
struct NodePast {
  std::string host;
  std::string place;
  std::optional<Error> error;              ///< kUnsupported: a daemon that is older than this.
  int64_t answered_ns = 0;                 ///< By the caller's monotonic clock.
  std::optional<int64_t> clock_offset_ns;  ///< As of a NodeLook.
  control::History history;                ///< Empty with an error.
};

/// Asks the lockstepd of several nodes for their metrics periodically. Connections are kept between looks, and renewed
/// if they broke. Nodes that do not answer are asked separately, across looks and less and less often: they delay only
/// the look in which they stop answering. Call it from one thread; its own threads do the asking.
class NodePoller {
 public:
  /// `job_id`: only its series; empty: all. At most `parallel` nodes that answer are talked to at a time, and as many
  /// that do not.
  NodePoller(std::vector<control::Endpoint> endpoints, std::string job_id, size_t parallel);
  ~NodePoller();

  /// One of each node, in the order of the endpoints, within `deadline_ns` from now, or the first time as much longer
  /// as it takes to end tunnels that did not come up. Errors are in the looks: those of NodeClient, and kUnsupported
  /// where the daemon has no metrics; of a node that is not asked now, the last one. A tunnel that did not come up
  /// within the first look has half a minute after it, for as many looks as that takes.
  std::vector<NodeLook> Look(int64_t deadline_ns);
  /// What each node remembers of the last `length_ns`, in the order of the endpoints, at no more than `points`
  /// instants. Those that did not answer the last look are not asked.
  std::vector<NodePast> LookBack(int64_t length_ns, uint64_t points, int64_t deadline_ns);
  size_t node_count() const { return nodes_.size(); }

 private:
  struct Node;
  enum class Standing { kNew, kHeard, kSilent };  ///< Was not asked yet; answered the last time, or did not.
  void Begin(Node& node, Standing standing, int64_t deadline_ns);
  NodeLook NotAsked(const Node& node) const;
  NodeLook Ask(Node& node, int64_t deadline_ns);
  NodeLook Newest(Node& node) const LOCKSTEP_REQUIRES(mutex_);
  NodePast AskBack(Node& node, int64_t length_ns, uint64_t points, int64_t deadline_ns);

  const std::string job_id_;
  const size_t parallel_;
  std::vector<std::unique_ptr<Node>> nodes_;

  Mutex mutex_;  // Guards what of a node says so, too.
  std::condition_variable_any changed_;
  bool ends_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  AskingThreads heard_threads_;   // For nodes that answered last time. Go first: their work uses all the rest.
  AskingThreads silent_threads_;  // For the others.
};

}  // namespace lockstep::live
