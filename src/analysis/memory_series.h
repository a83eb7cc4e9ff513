#pragma once

#include <cstdint>
#include <vector>

#include "model/run.h"

namespace lockstep::analysis {

/// Allocated bytes over time of one device ("device" -1 = CPU) of one rank, reduced to the smallest and largest of each
/// time bucket: no peak is lost.
struct MemorySeries {
  size_t rank_index = 0;
  int32_t device = -1;
  std::vector<int64_t> time_ns;  ///< Of the bucket's first change, common clock; ascending. Buckets without are absent.
  std::vector<int64_t> min_bytes;
  std::vector<int64_t> max_bytes;
};

/// Series of one rank by device, each of at most `bucket_count` (>= 1) points. The counter is "Total Allocated"; where
/// the file has none there is no series. Cost: O(memory events). Source: docs/metrics.md#memory-series.
std::vector<MemorySeries> ComputeMemorySeries(const model::Run& run, size_t rank_index, size_t bucket_count);

}  // namespace lockstep::analysis
