#pragma once

#include <cstdint>
#include <vector>

#include "analysis/extremes_over_time.h"
#include "model/run.h"

namespace lockstep::analysis {

/// Allocated bytes over time of one device ("device" -1 = CPU) of one rank.
struct MemorySeries {
  size_t rank_index = 0;
  int32_t device = -1;
  ExtremesOverTime<int64_t> bytes;
};

/// Series of one rank by device, each of at most `point_count` (>= 1) points. The counter is "Total Allocated"; where
/// the file has none there is no series. Cost: O(memory events). Source: docs/metrics.md#memory-series.
std::vector<MemorySeries> ComputeMemorySeries(const model::Run& run, size_t rank_index, size_t point_count);

}  // namespace lockstep::analysis
