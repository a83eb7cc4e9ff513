#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/parallelism/process_groups.h"
#include "analysis/parallelism/rank_traffic.h"

namespace lockstep::analysis {

/// What happens to gathered weights between the forward and the backward pass.
enum class Resharding : uint8_t {
  kAfterForward,  ///< Gathered in both passes: freed in between (FULL_SHARD, ZeRO-3).
  kKept,          ///< Gathered once: kept for the backward pass (SHARD_GRAD_OP, ZeRO-2), or gathered in it alone.
  kUnknown,       ///< The trace does not tell the passes apart.
};
const char* ReshardingName(Resharding resharding);  ///< "after_forward", "kept", "unknown".

/// Sharded weights and gradients of one rank in one data group: all_gathers of weights, and reduce_scatters of
/// gradients in the backward pass. Source: docs/metrics.md#fsdp.
struct FsdpRow {
  size_t rank_index = 0;
  uint32_t group = 0;       ///< ProcessGroupRow::number.
  uint64_t step_count = 0;  ///< 0 without steps: then figures are of the whole trace.
  uint64_t gather_count = 0;
  uint64_t gather_backward_count = 0;
  std::optional<int64_t> gather_bytes = {};
  int64_t gather_ns = 0;
  int64_t gather_exposed_ns = 0;
  /// Gathers that run beside computation for at least half of their time: issued before what needs them.
  uint64_t prefetched_count = 0;
  uint64_t scatter_count = 0;
  std::optional<int64_t> scatter_bytes = {};
  int64_t scatter_ns = 0;
  int64_t scatter_exposed_ns = 0;
  Resharding resharding = Resharding::kUnknown;
  std::optional<int64_t> peak_allocated_bytes = {};  ///< Of the rank's device, from memory events.
  std::optional<int64_t> peak_reserved_bytes = {};
};

struct Fsdp {
  static constexpr std::string_view kPass = "fsdp";

  std::vector<FsdpRow> rows;  ///< By (rank, group).
};

/// Reads no events. Rows for groups of kind data, and of all ranks where nothing says for what, on ranks that
/// both gather and reduce-scatter there. By (rank, group). Cost: O(calls).
std::vector<FsdpRow> FinishFsdp(const model::Run& run, const std::vector<RankTraffic>& by_rank_index,
                                const std::vector<ProcessGroupRow>& groups);

}  // namespace lockstep::analysis
