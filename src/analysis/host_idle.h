#pragma once

#include <cstdint>
#include <vector>

#include "analysis/rank_context.h"
#include "analysis/track_merge.h"

namespace lockstep::analysis {

/// Time of some gaps by what the host did meanwhile, by priority: in a call of the device runtime or driver, in a data
/// loader range, in an operator, none of these. The parts sum to the gaps' length.
struct HostShares {
  int64_t runtime_ns = 0;
  int64_t data_loader_ns = 0;
  int64_t operator_ns = 0;
  int64_t unknown_ns = 0;
};

/// `gaps` sorted and disjoint. All CPU threads of the rank count together. Annotations and ProfilerStep ranges are not
/// operators. Cost: O(gaps + events of operator and runtime lanes). Source: docs/metrics.md#idle-host.
HostShares AttributeToHost(const RankContext& context, const std::vector<Interval>& gaps);

}  // namespace lockstep::analysis
