#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/nanoseconds.h"
#include "base/now.h"
#include "base/result.h"
#include "node/control/client/job_capture.h"
#include "node/control/client/job_capture_choice.h"

namespace lockstep::control {

/// How long all nodes together have to answer one question, other than for their processes.
inline constexpr int64_t kQuestionNs = 10 * kSecondNs;

/// One connection to each node of a job, all asked at a time. Functions block; one thread.
class JobLinks {
 public:
  explicit JobLinks(const JobCaptureRequest& request);

  /// Clock, exchange time and processes of every node. A node that does not answer gets a `problem`.
  std::vector<NodeProcesses> Ask(std::vector<JobNodeState>& nodes);
  /// Processes alone, of nodes without a problem.
  std::vector<NodeProcesses> Refresh(const std::vector<JobNodeState>& nodes);

  /// Calls `work` for the nodes where `wanted` holds, a few at a time; each within `deadline_ns` for all. A node's
  /// connection is made anew after it failed. Errors by node; nodes that were not wanted have none.
  std::vector<Status> ForEach(const std::vector<JobNodeState>& nodes, int64_t deadline_ns,
                              const std::function<bool(size_t)>& wanted,
                              const std::function<Status(size_t, NodeClient&, int64_t left_ns)>& work);

  /// How long one question to all of them takes, given the slowest node's exchange.
  int64_t RoundNs(const std::vector<JobNodeState>& nodes) const;

 private:
  Status AskOne(JobNodeState& node, NodeClient& client, int64_t left_ns, std::vector<Process>& processes);

  const JobCaptureRequest& request_;
  std::vector<std::unique_ptr<NodeClient>> clients_;
};

}  // namespace lockstep::control
