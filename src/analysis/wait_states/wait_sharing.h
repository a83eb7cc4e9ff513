#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/wait_states/wait_plan.h"

namespace lockstep::analysis {

/// How members' waiting at one collective is shared among its late members: while several are missing, each of them has
/// an equal part of it, but none more than it was late. The part of late member k in the waiting of member m is a sum
/// of one term of m and one of k, cut off at k's lateness, so that sums over all m need no pairs.
class WaitSharing {
 public:
  struct Late {
    int32_t node = 0;         ///< Index into WaitPlan::nodes.
    uint32_t member = 0;      ///< Index into the collective's members.
    int64_t lateness_ns = 0;  ///< Of the node: what it is charged at most.
    int64_t shared_ns = 0;    ///< The part of it in a wait that began when the first late member arrived.
  };

  /// One member's waiting: for late members from `first` on.
  struct Wait {
    size_t first = 0;
    int64_t offset_ns = 0;  ///< To be added to their shared_ns.
  };

  /// The collective must have waits. O(members + late members log late members).
  WaitSharing(const WaitPlan& plan, uint32_t instance);

  const std::vector<Late>& late() const { return late_; }  ///< By (arrival, member).

  Wait WaitOf(uint32_t member) const;  ///< O(log late members).

  /// Part of late()[k], k >= wait.first, in the waiting.
  int64_t Charge(const Wait& wait, size_t k) const {
    const int64_t charged_ns = wait.offset_ns + late_[k].shared_ns;
    return charged_ns < late_[k].lateness_ns ? charged_ns : late_[k].lateness_ns;
  }

  /// By late(): its parts in the waiting of all members together. O(members log members).
  std::vector<int64_t> Totals() const;

 private:
  const std::vector<int64_t>& arrivals_;
  std::vector<Late> late_;
};

}  // namespace lockstep::analysis
