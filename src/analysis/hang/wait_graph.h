#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/hang/job_view.h"
#include "analysis/hang/rank_condition.h"

namespace lockstep::hang {

/// A rank's oldest operation in one group that cannot have completed, and whom it waits for.
struct Wait {
  int32_t rank = 0;
  uint32_t group = 0;
  const Track* track = nullptr;
  uint32_t entry = 0;
  uint32_t site = 0;
  std::optional<int64_t> sequence;     ///< nullopt for p2p.
  std::vector<int32_t> waits_for;      ///< Their record shows that they have not entered it.
  std::vector<int32_t> perhaps_waits;  ///< They have no record, or it does not say.
  bool is_p2p = false;
  bool is_send = false;
  bool failed = false;  ///< Marked complete, yet it cannot be: it failed.
};

/// Operations that all members entered with matching calls and that none, or not all, completed.
struct Flight {
  uint32_t group = 0;
  int64_t sequence = 0;
  std::vector<int32_t> open_on;
  bool completed_somewhere = false;
};

struct WaitGraph {
  std::vector<Wait> waits;                     ///< By rank, then time of issue.
  std::vector<std::vector<uint32_t>> of_rank;  ///< Into waits, by rank.
  std::vector<uint32_t> awaited_by;            ///< How many ranks certainly wait for each.
  std::vector<uint32_t> perhaps_awaited_by;
  std::vector<Flight> flights;
  std::vector<int32_t> roots;                ///< Ranks that others wait for, and that wait for no known rank.
  std::vector<std::vector<int32_t>> cycles;  ///< Ranks that wait only for one another; each ascending.
  std::vector<char> has_open;                ///< By rank: whether it has an open operation.
  bool Waits(int32_t rank) const { return !of_rank[static_cast<size_t>(rank)].empty(); }
  /// Ranks that are held up by any of `ranks`, directly or through others. Ascending, without `ranks`.
  std::vector<int32_t> HeldUpBy(const std::vector<int32_t>& ranks) const;
};

/// Cost: O(entries + waits).
WaitGraph MakeWaitGraph(const JobView& view, const std::vector<RankCondition>& conditions);

}  // namespace lockstep::hang
