#pragma once

#include <ostream>

#include "node/jobs/status_view.h"
#include "present/report/report.h"

namespace lockstep::cli {

/// At a glance: jobs with their ranks, captures, nodes, problems. `all`: a line for every process and capture; else
/// jobs of more than 32 ranks are a line a host, and of what is over only the newest is shown.
void WriteStatusText(const jobs::StatusView& view, const report::TextOptions& options, bool all, std::ostream& out);

/// The document lockstep.status/1 (docs/json.md#lockstepstatus1).
void WriteStatusJson(const jobs::StatusView& view, std::ostream& out);

}  // namespace lockstep::cli
