#pragma once

#include <string>

#include "analysis/frontier/job_stages.h"
#include "analysis/rank_memory/rank_memory.h"

namespace lockstep::page {

/// A bar a window, as high as its mean step: the increments of its stages on each other, with a key.
std::string StepsSvg(const frontier::JobStages& job);

/// A row a rank, a column a window: the fuller, the more of the window's time it cost. At most kMostCostRows ranks,
/// those that cost most. Empty: nobody cost anything.
std::string CostSvg(const frontier::JobStages& job);
constexpr size_t kMostCostRows = 64;

/// A line a rank, at most kMostMemoryLines; those that findings name stand out. Empty: none has two samples.
std::string MemorySvg(const frontier::JobStages& job, rank_memory::Signal signal);
constexpr size_t kMostMemoryLines = 64;

}  // namespace lockstep::page
