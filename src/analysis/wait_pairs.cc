#include "analysis/wait_pairs.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "analysis/interval_union.h"

namespace lockstep::analysis {
namespace {

struct Tally {
  IntervalUnion waits;
  uint64_t count = 0;
};

}  // namespace

std::vector<WaitPair> ComputeWaitPairs(const Collectives& collectives) {
  // One culprit at a time, so that only one rank's intervals are held.
  std::unordered_map<size_t, std::vector<size_t>> by_culprit;
  for (size_t i = 0; i < collectives.instances.size(); ++i) {
    const CollectiveInstance& instance = collectives.instances[i];
    if (!instance.synchronising || !TellsWaits(instance)) continue;
    if (instance.last_rank_index) by_culprit[*instance.last_rank_index].push_back(i);
  }
  std::vector<WaitPair> pairs;
  for (const auto& [culprit, indices] : by_culprit) {
    std::unordered_map<size_t, Tally> victims;
    for (const size_t i : indices) {
      const CollectiveInstance& instance = collectives.instances[i];
      int64_t last_ns = INT64_MIN;
      for (const CollectiveMember& member : instance.members) last_ns = std::max(last_ns, member.arrival_ns);
      for (const CollectiveMember& member : instance.members) {
        if (member.rank_index == culprit || member.arrival_ns >= last_ns) continue;
        Tally& tally = victims[member.rank_index];
        tally.waits.Add(member.arrival_ns, last_ns);
        ++tally.count;
      }
    }
    for (auto& [victim, tally] : victims) pairs.push_back({victim, culprit, tally.waits.Length(), tally.count});
  }
  std::sort(pairs.begin(), pairs.end(), [](const WaitPair& a, const WaitPair& b) {
    return std::pair(a.culprit_rank_index, a.victim_rank_index) < std::pair(b.culprit_rank_index, b.victim_rank_index);
  });
  return pairs;
}

}  // namespace lockstep::analysis
