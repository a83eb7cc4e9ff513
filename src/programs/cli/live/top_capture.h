#pragma once

#include <string>
#include <vector>

#include "node/jobs/nodes.h"
#include "present/top/screen.h"

namespace lockstep::cli {

/// Traces a rank, or all ranks of its job, for a second, as `lockstep capture` does, into a folder of its own in this
/// one. As lines: where the traces are and what reads them, or why there are none.
std::vector<std::string> CaptureTarget(const jobs::Nodes& nodes, const top::RankTarget& target, bool whole_job);

}  // namespace lockstep::cli
