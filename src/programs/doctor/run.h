#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/jobs/nodes.h"
#include "programs/doctor/check.h"

namespace lockstep::doctor {

/// What is looked at on this node. `output_folder`: where traces are to be brought.
std::vector<Check> CheckThisNode(const std::string& output_folder);

struct JobRequest {
  jobs::Nodes nodes;
  bool names_daemon = false;     ///< This node's daemon itself is to look at ranks.
  int64_t timeout_ns = 0;        ///< For all nodes and tests together; > 0.
  bool with_network = true;      ///< Nodes send each other data.
  std::string mpi_command = {};  ///< Tests collectives by this command; empty: not tested.
};

/// Asks the nodes of a job, looks at its ranks, tests the network between its nodes, and judges.
/// Errors: those of CheckCollectives.
Result<std::vector<Check>> CheckJobNodes(const JobRequest& request);

}  // namespace lockstep::doctor
