#include "analysis/memory_series.h"

#include <algorithm>
#include <map>

namespace lockstep::analysis {

std::vector<MemorySeries> ComputeMemorySeries(const model::Run& run, size_t rank_index, size_t bucket_count) {
  struct Building {
    MemorySeries series;
    int64_t bucket = -1;
  };
  const model::RankTrace& trace = run.ranks[rank_index];
  const model::MemoryColumns& memory = trace.memory;
  std::vector<MemorySeries> result;
  if (memory.size() == 0) return result;
  const int64_t first_ns = memory.time_ns[0];
  const int64_t span_ns = memory.time_ns[memory.size() - 1] - first_ns;
  const int64_t bucket_ns = span_ns / static_cast<int64_t>(std::max<size_t>(bucket_count, 1)) + 1;
  std::map<int16_t, Building> by_device;
  for (size_t i = 0; i < memory.size(); ++i) {
    const int64_t bytes = memory.allocated_bytes[i];
    if (bytes < 0) continue;
    Building& building = by_device[memory.device[i]];
    MemorySeries& series = building.series;
    const int64_t bucket = (memory.time_ns[i] - first_ns) / bucket_ns;
    if (bucket != building.bucket) {
      building.bucket = bucket;
      series.time_ns.push_back(trace.clock.ToRun(memory.time_ns[i]));
      series.min_bytes.push_back(bytes);
      series.max_bytes.push_back(bytes);
    } else {
      series.min_bytes.back() = std::min(series.min_bytes.back(), bytes);
      series.max_bytes.back() = std::max(series.max_bytes.back(), bytes);
    }
  }
  for (auto& [device, building] : by_device) {
    building.series.rank_index = rank_index;
    building.series.device = device;
    result.push_back(std::move(building.series));
  }
  return result;
}

}  // namespace lockstep::analysis
