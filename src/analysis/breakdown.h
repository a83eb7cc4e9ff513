#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/rank_context.h"
#include "base/ids.h"

namespace lockstep::analysis {

/// What a breakdown was computed from.
enum class Basis : uint8_t {
  kDevice,  ///< Device events (kernels, copies, sets).
  kCpu,     ///< A CPU-only job: operators and collective ranges of its CPU threads.
  kNone,    ///< Neither; all durations are 0 and mean nothing.
};
const char* BasisName(Basis basis);

/// Where a rank's time went. Exact integer unions over half-open intervals, per device of the rank (normally one).
/// busy = |union(all)|; idle = span - busy; compute = |union(kernels that are not communication)|;
/// communication = |union(communication)|; overlapped = |communication n compute|; exposed = communication -
/// overlapped; memory = |union(copies and sets)|; exposed_memory = |memory \ (compute u communication)|. So busy =
/// compute + exposed communication + exposed_memory. Source: docs/metrics.md#breakdown.
struct BreakdownRow {
  size_t rank_index = 0;  ///< Into Run::ranks.
  Basis basis = Basis::kNone;
  std::optional<int64_t> step_number = {};  ///< Set on per-step rows only.
  int64_t start_ns = 0;                     ///< Start of the span, trace clock.
  int64_t span_ns = 0;
  int64_t busy_ns = 0;
  int64_t compute_ns = 0;
  int64_t communication_ns = 0;
  int64_t exposed_communication_ns = 0;
  int64_t overlapped_communication_ns = 0;
  int64_t memory_ns = 0;
  int64_t exposed_memory_ns = 0;
  int64_t idle_ns = 0;
  /// overlapped / communication; absent without communication.
  std::optional<double> communication_overlap_ratio() const;
};

struct Breakdown {
  static constexpr std::string_view kPass = "breakdown";

  std::vector<BreakdownRow> ranks;  ///< One per rank trace, in order.
  std::vector<BreakdownRow> steps;  ///< By rank, then step. Windows: docs/metrics.md#step-windows.
};

/// Per-rank part; `steps` rows are appended in order of step. Cost: O(n log n) in device events at worst, O(n) when
/// sorted.
void ComputeBreakdown(const RankContext& context, BreakdownRow* whole, std::vector<BreakdownRow>* steps);

}  // namespace lockstep::analysis
