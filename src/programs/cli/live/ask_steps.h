#pragma once

#include <cstdint>

#include "node/jobs/nodes.h"
#include "present/live_stages/stage_watch.h"

namespace lockstep::cli {

/// Asks these nodes for the steps of one of their jobs; `time_limit_ns` for all of them to answer.
live_stages::AskSteps AskStepsOf(const jobs::Nodes& nodes, int64_t time_limit_ns);

}  // namespace lockstep::cli
