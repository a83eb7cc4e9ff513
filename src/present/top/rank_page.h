#pragma once

#include <string>
#include <vector>

#include "node/live/job_view.h"
#include "present/report/style.h"

namespace lockstep::top {

/// All that is known of one rank, a line each: who it is, its phases as bars, rates, memory, device, collectives,
/// values. Nothing stands for what was not measured but "-".
std::vector<std::string> RankLines(const live::JobView& job, const live::RankView& rank, int width,
                                   const report::Style& style);

}  // namespace lockstep::top
