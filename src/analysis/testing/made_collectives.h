#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/collectives.h"

namespace lockstep::analysis::testing {

/// A complete all_reduce as TimeCollectives leaves it: member i of `arrivals_ns` is rank i, all end `transfer_ns` after
/// the last arrival; the last is named unless it ties.
inline CollectiveInstance MadeCollective(const std::vector<int64_t>& arrivals_ns, int64_t transfer_ns) {
  CollectiveInstance instance;
  instance.group = "0";
  instance.name = "all_reduce";
  instance.synchronising = true;
  instance.complete = true;
  instance.transfer_ns = transfer_ns;
  const int64_t last_ns = *std::max_element(arrivals_ns.begin(), arrivals_ns.end());
  for (size_t rank = 0; rank < arrivals_ns.size(); ++rank) {
    CollectiveMember member;
    member.rank_index = rank;
    member.arrival_ns = member.trace_start_ns = arrivals_ns[rank];
    member.end_ns = member.trace_end_ns = last_ns + transfer_ns;
    member.duration_ns = member.end_ns - member.arrival_ns;
    member.wait_ns = last_ns - member.arrival_ns;
    instance.members.push_back(member);
    if (arrivals_ns[rank] == last_ns && std::count(arrivals_ns.begin(), arrivals_ns.end(), last_ns) == 1) {
      instance.last_rank_index = rank;
    }
  }
  return instance;
}

}  // namespace lockstep::analysis::testing
