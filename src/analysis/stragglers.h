#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/collectives.h"
#include "analysis/rank_context.h"

namespace lockstep::analysis {

/// What a late rank did more of than its peers between two collectives.
struct LateActivity {
  std::string name;       ///< Operator, annotation, Python frame, "device idle", ...
  int64_t excess_ns = 0;  ///< Own time less the median of the other members, summed over the late arrivals.
};

/// One rank's part in waiting, summed over complete collectives of all groups.
struct StragglerRow {
  size_t rank_index = 0;
  uint64_t collective_count = 0;
  uint64_t last_count = 0;    ///< Times it arrived last (beyond the clocks' uncertainty).
  int64_t wait_ns = 0;        ///< Its own waiting for others.
  int64_t wait_given_ns = 0;  ///< Waiting of all others in collectives where it was last.
  int64_t delay_ns = 0;       ///< Job time lost to it: sum of (its arrival - second-last arrival) where last.
  double last_ratio = 0;      ///< last_count / collective_count.
  bool chronic = false;       ///< Late in most of the steps, not in one (docs/metrics.md#stragglers).
  std::optional<size_t> worst_instance;  ///< Index into Collectives::instances.
  std::vector<LateActivity> activities;  ///< Largest excess first, at most 5; empty for ranks that are not late.
};

struct Stragglers {
  std::vector<StragglerRow> rows;  ///< By wait_given_ns, largest first, then rank.
};

Stragglers ComputeStragglers(const RunContext& shared, const Collectives& collectives);

}  // namespace lockstep::analysis
