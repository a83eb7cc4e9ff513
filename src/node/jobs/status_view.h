#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/control/api/capture.h"
#include "node/control/api/node.h"
#include "node/control/api/process.h"
#include "node/control/client/start_plan.h"
#include "node/jobs/nodes.h"

namespace lockstep::jobs {

/// The status that one node's daemon reported.
struct NodeView {
  control::Endpoint endpoint;
  std::string host;            ///< As the daemon calls it, or as it was asked for.
  std::optional<Error> error;  ///< It did not answer, or not completely; the parts that arrived are kept.
  std::optional<control::NodeStatus> status;
  std::optional<control::ClockDifference> clock;
  std::vector<control::Process> processes;  ///< Of the job that was asked for.
  std::vector<control::Capture> captures;   ///< Those that hold such a process, or wait for one.
};

/// A process and where it is.
struct PlacedProcess {
  const NodeView* node = nullptr;
  const control::Process* process = nullptr;
};

/// The processes of one job, on all nodes. Processes without a job are one per user; a job without an id (torchrun
/// without --rdzv-id) is known by its launcher.
struct JobView {
  control::JobKind kind = control::JobKind::kNone;
  std::string id;
  uint32_t uid = 0;
  std::string user;
  std::optional<int32_t> world_size;
  std::vector<PlacedProcess> ranks;    ///< Trainers, by rank, then host and pid.
  std::vector<PlacedProcess> helpers;  ///< Launchers and helpers.
  std::vector<std::string> hosts;      ///< Sorted.
  std::vector<int32_t> missing_ranks;  ///< Below world_size, and registered nowhere that was asked.
};

/// The captures that one request made on several nodes.
struct GroupView {
  std::string group;
  std::vector<std::pair<const NodeView*, const control::Capture*>> captures;  ///< At least one.
  bool is_running = false;
  int64_t created_unix_ns = 0;  ///< Of the first.
  size_t target_count = 0;
  size_t done_count = 0;
};

struct StatusView {
  std::string job_id;  ///< Asked for; empty: any.
  int64_t asked_unix_ns = 0;
  std::vector<NodeView> nodes;
  size_t answered_count() const;
};

/// Asks all nodes at a time, all within `deadline_ns`.
StatusView AskNodes(const Nodes& nodes, int64_t deadline_ns);

std::vector<JobView> JobsOf(const StatusView& view);      ///< By kind and id; processes without a job last.
std::vector<GroupView> GroupsOf(const StatusView& view);  ///< Running ones first, then the newest.

}  // namespace lockstep::jobs
