#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/rank_context.h"

namespace lockstep::analysis {

/// Allocator counters of one device of one rank ("device" -1 = CPU), and the copies' volume. Absent = not recorded.
struct MemoryRow {
  size_t rank_index = 0;
  int32_t device = -1;
  std::optional<int64_t> peak_allocated_bytes = {};
  std::optional<int64_t> peak_reserved_bytes = {};
  std::optional<int64_t> device_memory_bytes = {};  ///< Capacity, from deviceProperties.
  uint64_t allocation_count = 0;
  uint64_t free_count = 0;
  int64_t net_bytes = 0;  ///< Allocated less freed over the window.
};

struct Memory {
  static constexpr std::string_view kPass = "memory";

  std::vector<MemoryRow> rows;  ///< By rank, then device.
};

void ComputeMemory(const RankContext& context, std::vector<MemoryRow>* rows);

}  // namespace lockstep::analysis
