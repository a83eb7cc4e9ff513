#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/rank_context.h"

namespace lockstep::analysis {

/// Launch calls of one rank paired with their device events by correlation id. Nodes of a graph wait for each other
/// after one common launch, so they are counted apart and have no delay. Source: docs/metrics.md#launch.
struct LaunchRow {
  size_t rank_index = 0;
  uint64_t launch_count = 0;       ///< Device events with a launch call of their own in the file.
  uint64_t unlinked_count = 0;     ///< Device events without a launch call in the file.
  uint64_t graph_event_count = 0;  ///< Device events launched by a graph launch.
  int64_t total_delay_ns = 0;      ///< Sum of max(0, device start - call end).
  int64_t max_delay_ns = 0;
  std::optional<int64_t> median_delay_ns = {};
  uint64_t long_delay_count = 0;    ///< Delay > 100 us.
  uint64_t short_kernel_count = 0;  ///< Device duration < duration of the call.
  uint64_t long_call_count = 0;     ///< Call > 50 us.
};

/// Queue of one stream: +1 at the start of a launch call, -1 at the start of its device event (a launch first where
/// both fall together). Graph launches are left out: their nodes do not take a place each. Source:
/// docs/metrics.md#launch.
struct QueueRow {
  size_t rank_index = 0;
  DeviceOrdinal device;
  StreamId stream;
  uint64_t change_count = 0;
  double mean_length = 0;  ///< Mean over changes, as Holistic Trace Analysis prints.
  int64_t max_length = 0;
  int64_t full_ns = 0;  ///< Time with length >= 1024: the launch queue is full, the host blocks.
};

struct Launch {
  static constexpr std::string_view kPass = "launch";

  std::vector<LaunchRow> rows;   ///< Ranks with device events.
  std::vector<QueueRow> queues;  ///< By rank.
};

void ComputeLaunch(const RankContext& context, LaunchRow* row, std::vector<QueueRow>* queues);

}  // namespace lockstep::analysis
