#include "analysis/memory.h"

#include <algorithm>
#include <map>

#include "analysis/name_rows.h"
#include "analysis/pass.h"
#include "analysis/table.h"

namespace lockstep::analysis {
namespace {

/// Largest of the values seen; -1 means that the file has none.
void KeepPeak(int64_t value, std::optional<int64_t>* peak) {
  if (value < 0) return;
  if (!peak->has_value() || value > **peak) *peak = value;
}

}  // namespace

void ComputeMemory(const RankContext& context, std::vector<MemoryRow>* rows) {
  const model::RankTrace& trace = context.trace();
  const model::MemoryColumns& memory = trace.memory;
  std::map<int16_t, MemoryRow> by_device;
  MemoryRow* row = nullptr;
  for (size_t i = 0; i < memory.size(); ++i) {
    if (context.cpu_cutoff_ns && memory.time_ns[i] >= *context.cpu_cutoff_ns) break;
    if (row == nullptr || row->device != memory.device[i]) {
      row = &by_device[memory.device[i]];
      row->device = memory.device[i];
    }
    const int64_t change = memory.change_bytes[i];
    if (change > 0) ++row->allocation_count;
    if (change < 0) ++row->free_count;
    row->net_bytes = AddSaturating(row->net_bytes, change);
    KeepPeak(memory.allocated_bytes[i], &row->peak_allocated_bytes);
    KeepPeak(memory.reserved_bytes[i], &row->peak_reserved_bytes);
  }
  for (auto& entry : by_device) {
    MemoryRow& found = entry.second;
    found.rank_index = context.rank_index;
    if (found.device >= 0) {
      const auto device = std::find_if(trace.devices.begin(), trace.devices.end(), [&](const model::Device& candidate) {
        return candidate.ordinal.value == found.device;
      });
      if (device != trace.devices.end()) found.device_memory_bytes = device->memory_bytes;
    }
    rows->push_back(found);
  }
}

namespace {

std::vector<RowColumn<MemoryRow>> MemoryColumns() {
  using Row = MemoryRow;
  return {
      Field<&Row::device>("device", "", "Device ordinal; -1 = CPU."),
      Field<&Row::peak_allocated_bytes>("peak_allocated_bytes", "bytes", "Largest `Total Allocated`.", "not recorded"),
      Field<&Row::peak_reserved_bytes>("peak_reserved_bytes", "bytes", "Largest `Total Reserved`.", "not recorded"),
      Field<&Row::device_memory_bytes>("device_memory_bytes", "bytes", "Capacity of the device.", "not stated"),
      Field<&Row::allocation_count>("allocation_count", "count", "Allocations."),
      Field<&Row::free_count>("free_count", "count", "Frees."),
      Field<&Row::net_bytes>("net_bytes", "bytes", "Allocated less freed over the window."),
  };
}

}  // namespace

Pass MemoryPass() {
  return RankPass<Memory>(
      {.question = "How much memory was in use, and how near to the limit?",
       .tables = {DeclareRankTable(
           "memory", "memory",
           "The caching allocator's counters for one device of one rank; empty without memory events", &Memory::rows,
           MemoryColumns())}},
      [](const RankContext& context) {
        Memory rank;
        ComputeMemory(context, &rank.rows);
        return rank;
      });
}

}  // namespace lockstep::analysis
