#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/rank_context.h"

namespace lockstep::analysis {

/// Stands for an index into RangeEvents::events where there is no such event.
inline constexpr uint32_t kNoRangeEvent = UINT32_MAX;

/// An event with two instants: node 2 i starts, node 2 i + 1 ends it.
struct RangeEvent {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  NameId name;
  model::Category category = model::Category::kCpuOp;
  bool in_range = false;  ///< Has nodes; others are there because synchronisations refer to them.
  int64_t process_id = 0;
  int64_t thread_id = 0;              ///< Stream of device events.
  uint32_t launch = kNoRangeEvent;    ///< Device events: their launch call.
  uint32_t launched = kNoRangeEvent;  ///< Launch calls: their (last) device event.
  uint32_t correlation = 0;           ///< Calls only.
  bool on_device() const {
    return category == model::Category::kKernel || category == model::Category::kMemcpy ||
           category == model::Category::kMemset;
  }
};

using SyncKind = model::SyncRecord::Kind;

/// One synchronisation of the trace with what it refers to.
struct RangeSync {
  SyncKind kind = SyncKind::kOther;
  int64_t end_ns = 0;
  int64_t device = 0;
  std::optional<int64_t> stream;
  uint32_t call = kNoRangeEvent;    ///< The call that waits.
  uint32_t source = kNoRangeEvent;  ///< kEvent, kStreamWaitEvent: last device event before the awaited cudaEventRecord.
  uint32_t target = kNoRangeEvent;  ///< kStreamWaitEvent: next device event that the thread launches on the stream.
};

/// What a rank's trace holds for the critical path of a range.
struct RangeEvents {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  std::vector<RangeEvent> events;  ///< CPU threads in order, each by start, outer first; then device events.
  std::vector<std::pair<uint32_t, uint32_t>> threads;  ///< [first, end) of each CPU thread's events.
  uint32_t first_device = 0;
  std::vector<RangeSync> syncs;  ///< Those of the range.
};

/// Absent when no CPU event's name contains `range`, or fewer than instance + 1 do.
std::optional<RangeEvents> CollectRangeEvents(const RankContext& context, const std::string& range, int64_t instance);

}  // namespace lockstep::analysis
