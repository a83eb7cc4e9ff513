#pragma once

#include <set>
#include <string>

#include "node/live/job_view.h"

namespace lockstep::live {

/// Figures of a job once its ranks are known: medians, shares, and which ranks are slow, stuck, waited for and missing.
/// Ranks whose node does not answer count as ranks only.
void FinishJob(JobView* job);

/// Adds the alarms, worst first. `gone`: ranks that were there before; `is_whole_job`: a rank that is not there is
/// missing, not elsewhere.
void AddAlarms(JobView* job, const std::set<std::string>& gone, bool is_whole_job);

}  // namespace lockstep::live
