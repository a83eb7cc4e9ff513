#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/wait_states/wait_plan.h"

namespace lockstep::analysis {

/// The rounds in which recurrence is counted: the steps that hold collectives or, if there are fewer than two, equal
/// shares of the collectives that have waits, in their order.
class WaitRounds {
 public:
  explicit WaitRounds(const WaitPlan& plan) : steps_(plan.steps) {
    if (steps_.size() >= 2) return;
    for (uint32_t i = 0; i < plan.arrival_ns.size(); ++i) {
      if (plan.HasWait(i)) instances_.push_back(i);
    }
    shares_ = std::clamp<size_t>(instances_.size() / kFewestInShare, 1, kMostShares);
  }

  size_t count() const { return steps_.size() >= 2 ? steps_.size() : shares_; }
  /// Of a late arrival in `step` (-1: before the first) at `instance`.
  size_t Of(int64_t step, uint32_t instance) const {
    if (steps_.size() >= 2) {
      const auto after = std::upper_bound(steps_.begin(), steps_.end(), step);
      return after == steps_.begin() ? 0 : static_cast<size_t>(after - steps_.begin()) - 1;
    }
    const auto at = std::lower_bound(instances_.begin(), instances_.end(), instance);
    return std::min(static_cast<size_t>(at - instances_.begin()) * shares_ / std::max<size_t>(instances_.size(), 1),
                    shares_ - 1);
  }

 private:
  static constexpr size_t kFewestInShare = 4;
  static constexpr size_t kMostShares = 6;
  const std::vector<int64_t>& steps_;
  std::vector<uint32_t> instances_;
  size_t shares_ = 1;
};

}  // namespace lockstep::analysis
