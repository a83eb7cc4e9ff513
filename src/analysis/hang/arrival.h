#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/hang/job_view.h"

namespace lockstep::hang {

/// How late one rank comes to its collectives.
struct Arrival {
  int32_t rank = 0;
  int64_t calls = 0;        ///< That all members' records hold.
  int64_t lateness_ns = 0;  ///< Sum over them: created - first member's created.
  int64_t own_delay_ns =
      0;  ///< Its own part of the lateness: how much slower it was than the quickest member since the last collective.
  int64_t late_calls = 0;        ///< How often that was more than a millisecond.
  uint32_t worst_group = kNone;  ///< Group and call in which its own delay was the largest.
  int64_t worst_sequence = 0;
  uint32_t worst_entry = kNone;
};

struct ArrivalTable {
  std::vector<Arrival> ranks;       ///< By rank, of all ranks.
  int64_t span_ns = 0;              ///< Time that the compared calls cover.
  int64_t longest_gap_ns = 0;       ///< Between two calls of one rank.
  std::vector<int32_t> stragglers;  ///< Ascending; empty: no rank is much and repeatedly late.
  double share = 0;  ///< Share of the span in which the latest straggler made others wait by its own delay.
};

/// Cost: O(entries log groups). Only for records with times; clocks of hosts are taken as they are.
ArrivalTable MeasureArrival(const JobView& view);

}  // namespace lockstep::hang
