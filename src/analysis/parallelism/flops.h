#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/parallelism/device_peak.h"
#include "analysis/rank_context.h"

namespace lockstep::analysis {

/// Calls of one matrix operator with one set of shapes, of one rank. Time of a call: the sum of the device events
/// launched in it; on ranks without device events, its own duration. Source: docs/metrics.md#flops.
struct FlopsRow {
  size_t rank_index = 0;
  std::string name;  ///< "aten::mm".
  std::string dims;  ///< "[[8944,1024],[1024,2816]]".
  std::string type;  ///< Of the factors, as written; empty when not recorded.
  Precision precision = Precision::kOther;
  uint64_t call_count = 0;
  uint64_t timed_count = 0;                       ///< Calls with a time: the rates are over these.
  int64_t flops = 0;                              ///< Of one call.
  int64_t bytes = 0;                              ///< Of one call: operands and result, each once.
  int64_t time_ns = 0;                            ///< Sum.
  double intensity = 0;                           ///< FLOP/byte.
  std::optional<double> mean_flops_per_s = {};    ///< Mean over calls of flops / time.
  std::optional<double> median_flops_per_s = {};  ///< Median of the same.
  std::optional<double> mean_bytes_per_s = {};    ///< Mean over calls of bytes / time.
  /// Intensity at or above the device's ridge (peak FLOP/s over bandwidth); absent without a peak.
  std::optional<bool> compute_bound = {};
  /// mean_flops_per_s over the roof at this intensity: min(peak, intensity x bandwidth).
  std::optional<double> roof_ratio = {};
};

/// A rank's matrix operators together.
struct FlopsRankRow {
  size_t rank_index = 0;
  std::string device;          ///< As in the trace; empty when unknown.
  uint64_t call_count = 0;     ///< Calls in the span with known work.
  uint64_t unknown_count = 0;  ///< Calls in the span whose shapes do not tell their work.
  int64_t flops = 0;           ///< Of the calls in the span; recomputation counts again.
  int64_t time_ns = 0;         ///< Of all calls in `rows`.
  int64_t span_ns = 0;         ///< First step's start to last step's end; without steps, first to last event.
  Precision precision = Precision::kOther;      ///< That of most FLOPs.
  std::optional<double> flops_per_s = {};       ///< flops / span.
  std::optional<double> peak_flops_per_s = {};  ///< Of the device at that precision; absent for unknown devices.
  std::optional<double> mfu = {};               ///< flops_per_s / peak.
  std::string peak_source;                      ///< Document of the peak.
};

/// One rank's part; FinishFlops only puts the ranks together.
struct FlopsPartial {
  std::vector<FlopsRow> rows;        ///< Largest time first, then name and shapes.
  std::optional<FlopsRankRow> rank;  ///< Absent when the trace has no shapes.
};

struct Flops {
  static constexpr std::string_view kPass = "flops";

  std::vector<FlopsRankRow> ranks;  ///< By rank.
  std::vector<FlopsRow> operators;  ///< By rank, largest time first.
};

/// Reads shapes, launches and device events. Cost: O(shapes log shapes + device events).
FlopsPartial MapFlops(const RankContext& context);

}  // namespace lockstep::analysis
