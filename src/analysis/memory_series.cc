#include "analysis/memory_series.h"

#include <map>

namespace lockstep::analysis {

std::vector<MemorySeries> ComputeMemorySeries(const model::Run& run, size_t rank_index, size_t point_count) {
  const model::RankTrace& trace = run.ranks[rank_index];
  const model::MemoryColumns& memory = trace.memory;
  std::vector<MemorySeries> result;
  if (memory.size() == 0) return result;
  const ExtremesBuilder<int64_t> none(memory.time_ns[0], memory.time_ns[memory.size() - 1], point_count);
  std::map<int16_t, ExtremesBuilder<int64_t>> by_device;
  for (size_t i = 0; i < memory.size(); ++i) {
    const int64_t bytes = memory.allocated_bytes[i];
    if (bytes < 0) continue;
    by_device.try_emplace(memory.device[i], none)
        .first->second.Add(memory.time_ns[i], trace.clock.ToRun(memory.time_ns[i]), bytes);
  }
  for (auto& [device, builder] : by_device) result.push_back({rank_index, device, builder.Take()});
  return result;
}

}  // namespace lockstep::analysis
