#pragma once

#include <cstdint>

#include "base/result.h"
#include "ingest/stage_files/stage_files.h"
#include "node/jobs/nodes.h"

namespace lockstep::jobs {

/// The newest steps of a job's ranks, as the daemons of its nodes keep them: `last_steps` of each rank, or, where
/// nodes were looked at too far apart for that, all that are kept. Nodes that did not answer and ranks that are missing
/// are errors of the ledger. Errors: kNotFound (no rank has steps), kInvalidArgument (several jobs: says how each is
/// named), a node's own where none answered.
Result<ingest::StageFiles> AskStages(const Nodes& nodes, uint64_t last_steps, int64_t deadline_ns);

}  // namespace lockstep::jobs
