#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/parallelism/group_kind.h"

namespace lockstep::analysis {

/// What a group is used for, counted over the ranks that have a trace. Forward = not issued in a backward pass.
struct GroupUse {
  uint64_t calls = 0;
  uint64_t point_to_point = 0;
  uint64_t all_to_all = 0;
  uint64_t all_reduce_forward = 0;
  uint64_t all_reduce_backward = 0;
  int64_t all_reduce_forward_bytes = 0;
  int64_t all_reduce_backward_bytes = 0;
  uint64_t reduce_scatter_forward = 0;
  uint64_t reduce_scatter_backward = 0;
  uint64_t all_gather = 0;
  uint64_t most_frequent_all_reduce = 0;  ///< all_reduces of the size that is most frequent.
  uint64_t far_sends = 0;                 ///< Sends and receives whose ends are not neighbours in the group.
  bool peers_known = false;
  uint64_t rank_steps = 0;         ///< Sum of the ranks' steps; 0 without steps.
  bool has_backward = false;       ///< The job has backward passes.
  bool has_cpu_operators = false;  ///< Their absence would have been seen.
};

/// Where a group lies among the ranks.
struct GroupPlace {
  std::vector<int32_t> members;  ///< Sorted; may be empty.
  bool is_world = false;
  /// Difference between successive members where it is the same for all; absent otherwise, and below two members.
  std::optional<int32_t> stride() const;
};

struct GroupVerdict {
  GroupKind kind = GroupKind::kUnknown;
  GroupBasis basis = GroupBasis::kNone;
  Confidence confidence = Confidence::kNone;
  std::string evidence;
};

/// From name and description first, then from use and place. Source: docs/metrics.md#process-groups.
GroupVerdict ClassifyGroup(const std::string& name, const std::string& description, const GroupUse& use,
                           const GroupPlace& place);

}  // namespace lockstep::analysis
