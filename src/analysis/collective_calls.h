#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/collective_kind.h"
#include "analysis/collectives.h"
#include "analysis/rank_context.h"
#include "base/ids.h"

namespace lockstep::analysis {

/// One collective call of one rank, as far as its own trace tells.
struct CollectiveCall {
  int64_t start_ns = 0;     ///< Trace clock: start of the kernel, on CPU backends of the range.
  int64_t order_ns = 0;     ///< Orders the calls of a rank: its start; on CPU backends, when it was issued.
  int64_t duration_ns = 0;  ///< Of the kernel or range.
  CollectiveKind kind = CollectiveKind::kOther;
  bool on_device = false;
  NameId dtype;  ///< As written; empty when unknown.
  NameId group_name;
  NameId group_description;
  NameId group_ranks;  ///< "Process Group Ranks" as written.
  std::optional<int64_t> in_elements;
  std::optional<int64_t> out_elements;
  std::optional<int32_t> group_size;
  std::optional<int64_t> sequence;
  std::optional<uint64_t> communicator_id;
  std::optional<int32_t> peer;           ///< Sends: the receiver's rank; receives: the sender's.
  std::optional<int64_t> step;           ///< Number of the step in which it was issued.
  StreamId stream;                       ///< Device calls only.
  std::optional<CollectiveIssue> issue;  ///< Where it was issued.
};

/// The rank's calls in order: device kernels that are communication, joined with their own metadata, with the
/// record_param_comms operator and with the nccl:... range around their launch call; and ranges of CPU backends
/// (gloo:...), joined by order with the c10d::... calls that issued them. A c10d operator without either is not a call
/// of its own. Source: docs/metrics.md#collective-calls. Cost: O(device events + runtime events + records).
std::vector<CollectiveCall> FindCollectiveCalls(const RunContext& shared, size_t rank_index);

/// Of several ranks, in their order, wherever their events are.
std::vector<std::vector<CollectiveCall>> FindCollectiveCalls(const RunContext& shared,
                                                             const std::vector<size_t>& rank_indices);

}  // namespace lockstep::analysis
