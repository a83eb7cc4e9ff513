#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/rank_context.h"
#include "base/ids.h"

namespace lockstep::analysis {

/// Idle time between consecutive events of one stream, by cause (Holistic Trace Analysis' definition):
/// host_wait: the launch call began after the previous event ended; else kernel_wait: gap below the threshold (30 us);
/// else other. Overlap of consecutive events counts as a negative gap, so that rounding cancels out; no sum is below 0.
/// Source: docs/metrics.md#idle.
struct IdleRow {
  size_t rank_index = 0;
  DeviceOrdinal device;
  StreamId stream;
  int64_t host_wait_ns = 0;
  int64_t kernel_wait_ns = 0;
  int64_t other_ns = 0;
};

/// What the host was doing while the whole device was idle, by priority: in a runtime call, in a data loader, in an
/// operator, nothing recorded. Parts sum to the breakdown's idle_ns. Source: docs/metrics.md#idle-host.
struct IdleHostRow {
  size_t rank_index = 0;
  int64_t runtime_ns = 0;
  int64_t data_loader_ns = 0;
  int64_t operator_ns = 0;
  int64_t unknown_ns = 0;
};

struct Idle {
  static constexpr std::string_view kPass = "idle";

  std::vector<IdleRow> rows;      ///< By rank.
  std::vector<IdleHostRow> host;  ///< One per rank trace, in order.
};

void ComputeIdle(const RankContext& context, std::vector<IdleRow>* rows, IdleHostRow* host);

}  // namespace lockstep::analysis
