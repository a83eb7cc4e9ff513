#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hang/job_view.h"

namespace lockstep::hang {

/// How late one rank comes to its collectives.
struct Arrival {
  int32_t rank = 0;
  int64_t calls = 0;        ///< That all members' records hold.
  int64_t lateness_ns = 0;  ///< Sum over them: created - first member's created.
  int64_t own_delay_ns =
      0;  ///< Of the lateness what it did not inherit: slower than the quickest member after being let go.
  int64_t late_calls = 0;        ///< How often that was more than a millisecond.
  uint32_t worst_group = kNone;  ///< Where its own delay was the largest, and after what it came late.
  int64_t worst_sequence = 0;
  uint32_t worst_entry = kNone;
};

struct ArrivalTable {
  std::vector<Arrival> ranks;       ///< By rank, of all ranks.
  int64_t span_ns = 0;              ///< Time that the compared calls cover.
  int64_t longest_gap_ns = 0;       ///< Between two calls of one rank.
  std::vector<int32_t> stragglers;  ///< Ascending; empty: nobody is late much and repeatedly.
  double share = 0;                 ///< Of the span, that the latest straggler kept others waiting on its own account.
};

/// Cost: O(entries log groups). Only for records with times; clocks of hosts are taken as they are.
ArrivalTable MeasureArrival(const JobView& view);

}  // namespace lockstep::hang
