#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/breakdown.h"
#include "analysis/memory.h"
#include "analysis/rank_context.h"

namespace lockstep::analysis {

/// Spread of one quantity over the ranks. ratio = max / mean - 1 (0 = balanced). Source: docs/metrics.md#imbalance.
struct ImbalanceRow {
  std::string
      quantity;  ///< "compute_ns", "exposed_communication_ns", "busy_ns", "kernel_count", "peak_allocated_bytes", ...
  double mean = 0;
  double min = 0;
  double max = 0;
  std::optional<double> ratio;  ///< Absent when the mean is 0.
  size_t max_rank_index = 0;
  size_t min_rank_index = 0;
};

struct Imbalance {
  static constexpr std::string_view kPass = "imbalance";

  std::vector<ImbalanceRow> rows;  ///< Empty for a single rank.
};

Imbalance ComputeImbalance(const RunContext& shared, const Breakdown& breakdown, const std::vector<MemoryRow>& memory);

}  // namespace lockstep::analysis
