#include "analysis/frontier/increments.h"

#include <algorithm>
#include <vector>

namespace lockstep::frontier {

std::array<Increment, kOrder.size()> Increments(std::span<const model::StageTimes> ranks) {
  std::array<Increment, kOrder.size()> increments = {};
  std::vector<int64_t> so_far_ns(ranks.size());
  int64_t frontier_ns = 0;
  for (const model::Stage stage : kOrder) {
    for (size_t i = 0; i < ranks.size(); ++i) so_far_ns[i] += At(ranks[i], stage);
    const auto leader = std::max_element(so_far_ns.begin(), so_far_ns.end());
    increments[static_cast<size_t>(stage)] = {*leader - frontier_ns, static_cast<size_t>(leader - so_far_ns.begin())};
    frontier_ns = *leader;
  }
  return increments;
}

}  // namespace lockstep::frontier
