#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "node/control/client/node_client.h"
#include "node/control/client/trace_window.h"

namespace lockstep::control {

/// A finished trace on a node, to be brought to a file.
struct TraceJob {
  size_t target_idx = 0;  ///< The caller's.
  size_t node_idx = 0;
  std::string capture_id;
  std::string trace_name;
  uint64_t bytes = 0;  ///< As the node says.
  std::string path;    ///< Without ".gz".
};

struct FetchedTrace {
  size_t target_idx = 0;
  Status status;
  std::string path;  ///< With its ending.
  uint64_t file_bytes = 0;
  TraceFacts facts;
};

/// Brings traces to files, a few at a time: four, one from a node that is reached through a tunnel. Each is tried three
/// times. Its functions are for one thread.
class TraceFetcher {
 public:
  using Connect = std::function<Result<std::unique_ptr<NodeClient>>(const Endpoint&)>;
  TraceFetcher(std::vector<Endpoint> nodes, Connect connect, bool compress);
  ~TraceFetcher();
  TraceFetcher(const TraceFetcher&) = delete;
  TraceFetcher& operator=(const TraceFetcher&) = delete;

  void Add(TraceJob job);
  /// Those that have ended since the last call.
  std::vector<FetchedTrace> Take();
  /// Whether some have not been taken yet.
  bool busy() const;
  /// Ends what is under way; what is queued ends as kCancelled.
  void Cancel();

 private:
  void Work();
  FetchedTrace Fetch(const TraceJob& job, std::map<size_t, std::unique_ptr<NodeClient>>& clients);
  Status Try(const TraceJob& job, NodeClient& client, FetchedTrace& fetched);

  const std::vector<Endpoint> nodes_;
  const Connect connect_;
  const bool compress_;
  std::atomic<bool> cancelled_ = false;

  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  bool stopping_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::deque<TraceJob> queue_ LOCKSTEP_GUARDED_BY(mutex_);
  std::map<size_t, size_t> running_ LOCKSTEP_GUARDED_BY(mutex_);  // By node.
  std::vector<FetchedTrace> done_ LOCKSTEP_GUARDED_BY(mutex_);
  size_t pending_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_ LOCKSTEP_GUARDED_BY(mutex_);
};

}  // namespace lockstep::control
