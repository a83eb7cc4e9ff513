#include "analysis/wait_states/wait_sharing.h"

#include <algorithm>
#include <utility>

namespace lockstep::analysis {

WaitSharing::WaitSharing(const WaitPlan& plan, uint32_t instance) : arrivals_(plan.arrival_ns[instance]) {
  const std::vector<int32_t>& nodes = plan.node_of_member[instance];
  for (uint32_t m = 0; m < nodes.size(); ++m) {
    if (nodes[m] < 0) continue;
    late_.push_back({nodes[m], m, plan.nodes[static_cast<size_t>(nodes[m])].lateness_ns, 0});
  }
  std::sort(late_.begin(), late_.end(), [&](const Late& a, const Late& b) {
    return std::pair(arrivals_[a.member], a.member) < std::pair(arrivals_[b.member], b.member);
  });
  for (size_t k = 1; k < late_.size(); ++k) {
    const int64_t piece_ns = arrivals_[late_[k].member] - arrivals_[late_[k - 1].member];
    late_[k].shared_ns = late_[k - 1].shared_ns + piece_ns / static_cast<int64_t>(late_.size() - k);
  }
}

WaitSharing::Wait WaitSharing::WaitOf(uint32_t member) const {
  const auto first =
      std::upper_bound(late_.begin(), late_.end(), arrivals_[member],
                       [&](int64_t time_ns, const Late& late) { return time_ns < arrivals_[late.member]; });
  Wait wait;
  wait.first = static_cast<size_t>(first - late_.begin());
  if (first == late_.end()) return wait;
  const int64_t piece_ns = arrivals_[first->member] - arrivals_[member];
  wait.offset_ns = piece_ns / static_cast<int64_t>(late_.end() - first) - first->shared_ns;
  return wait;
}

std::vector<int64_t> WaitSharing::Totals() const {
  std::vector<uint32_t> members(arrivals_.size());
  for (uint32_t m = 0; m < members.size(); ++m) members[m] = m;
  std::sort(members.begin(), members.end(), [&](uint32_t a, uint32_t b) { return arrivals_[a] < arrivals_[b]; });
  // Who arrives later waits for less: the offsets fall, and those whose part is cut off come first.
  std::vector<int64_t> offsets;
  std::vector<int64_t> sums{0};
  std::vector<int64_t> totals;
  auto next = members.begin();
  for (size_t k = 0; k < late_.size(); ++k) {
    for (; next != members.end() && arrivals_[*next] < arrivals_[late_[k].member]; ++next) {
      offsets.push_back(WaitOf(*next).offset_ns);
      sums.push_back(sums.back() + offsets.back());
    }
    const int64_t room_ns = late_[k].lateness_ns - late_[k].shared_ns;
    const auto cut = static_cast<size_t>(std::lower_bound(offsets.begin(), offsets.end(), room_ns, std::greater<>()) -
                                         offsets.begin());
    const auto uncut = static_cast<int64_t>(offsets.size() - cut);
    totals.push_back(static_cast<int64_t>(cut) * late_[k].lateness_ns + (sums.back() - sums[cut]) +
                     uncut * late_[k].shared_ns);
  }
  return totals;
}

}  // namespace lockstep::analysis
