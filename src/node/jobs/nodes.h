#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "node/control/client/fan_out.h"
#include "node/control/client/node_client.h"

namespace lockstep::jobs {

/// The nodes that a command talks to, and what is known of the job they were named by.
struct Nodes {
  std::vector<control::Endpoint> endpoints;  ///< At least one.
  bool is_local = false;                     ///< This node's daemon alone.
  std::string job_id = {};                   ///< Only processes of this job; empty: all.
  bool is_whole_job = false;                 ///< All of the job's nodes are here, by its scheduler's word.
  size_t parallel = control::kDefaultParallel;
  std::string scheduler_problem = {};  ///< With FindWithoutDaemon: why the job's nodes are not known.
};

}  // namespace lockstep::jobs
