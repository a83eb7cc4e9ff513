#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/collective_calls.h"
#include "model/run.h"

namespace lockstep::analysis {

/// Calls of every rank of a window that belong to one process group (or to one pair of ranks of it, for send and recv).
struct CollectiveGroup {
  std::string identity;                         ///< Tells groups of one name apart; orders groups.
  std::string label;                            ///< For people.
  std::vector<int32_t> members = {};            ///< Global ranks, sorted; empty when the trace does not list them.
  std::optional<int32_t> size = {};             ///< Members, with or without a trace.
  bool peer_unknown = false;                    ///< Sends and receives without a peer: nothing to join them by.
  std::vector<std::vector<size_t>> calls = {};  ///< Per rank of the window: indices into its calls, in order.
};

/// "[0, 1, 2]" -> {0, 1, 2}; absent when it is not a whole list (the producer cuts long ones: "[0, 1, ...]").
std::optional<std::vector<int32_t>> ParseGroupRanks(std::string_view text);

/// Sorts the calls of one window's ranks into groups, by identity. `calls` is parallel to the ranks
/// [first_rank_index, first_rank_index + calls.size()) of the run. Groups are told apart by name and members, since a
/// name may stand for different ranks on different hosts. Calls without any group are one group, "default", of all
/// ranks.
std::vector<CollectiveGroup> GroupCollectiveCalls(const model::Run& run, size_t first_rank_index,
                                                  const std::vector<std::vector<CollectiveCall>>& calls);

}  // namespace lockstep::analysis
