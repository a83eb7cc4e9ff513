#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/parallelism/process_groups.h"
#include "analysis/parallelism/rank_traffic.h"

namespace lockstep::analysis {

/// One gradient bucket, by its place in the backward pass: the all_reduces of a data group that are issued during the
/// pass, counted from its beginning. Means are over ranks and passes; passes without an issued bucket
/// (DDP.no_sync) do not count. Source: docs/metrics.md#ddp.
struct DdpBucketRow {
  uint32_t group = 0;   ///< ProcessGroupRow::number.
  uint32_t bucket = 0;  ///< From 0, in order of issue.
  uint64_t call_count = 0;
  std::optional<int64_t> bytes = {};  ///< Of one call, the first rank's first; absent when not recorded.
  int64_t mean_duration_ns = 0;       ///< Waiting for late ranks is in it.
  double issue_ratio = 0;             ///< Where in the backward pass of the CPU it was issued: 0 begin, 1 end.
  std::optional<int64_t> mean_overlapped_ns = {};  ///< Part inside the device's backward pass.
  int64_t mean_exposed_ns = 0;                     ///< Part in which nothing is computed.
};

/// A data group's gradients on one rank.
struct DdpRow {
  size_t rank_index = 0;
  uint32_t group = 0;
  uint64_t pass_count = 0;  ///< Backward passes that issued buckets.
  double buckets_per_pass = 0;
  std::optional<int64_t> bytes_per_pass = {};
  int64_t communication_ns = 0;  ///< Sum of the buckets' durations.
  int64_t exposed_ns = 0;        ///< Sum of their parts in which nothing is computed.
  /// Sum over passes of the time from the end of the device's backward pass to the end of the last bucket: what the
  /// optimizer waits for. Absent when no backward kernel is known.
  std::optional<int64_t> tail_ns = {};
};

struct Ddp {
  static constexpr std::string_view kPass = "ddp";

  std::vector<DdpRow> ranks;          ///< By (rank, group).
  std::vector<DdpBucketRow> buckets;  ///< By (group, bucket).
};

/// Reads no events. Groups of kind data, and of all ranks where nothing says for what; those that reduce-scatter
/// gradients are `fsdp`'s. Cost: O(calls).
Ddp FinishDdp(const model::Run& run, const std::vector<RankTraffic>& by_rank_index,
              const std::vector<ProcessGroupRow>& groups);

}  // namespace lockstep::analysis
