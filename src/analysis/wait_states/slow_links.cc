#include "analysis/wait_states/slow_links.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

namespace lockstep::analysis {
namespace {

constexpr size_t kMinimumAlike = 4;
constexpr int64_t kMinimumSlownessNs = 5'000;  // above the median

}  // namespace

std::vector<int64_t> SlowTransfers(const Collectives& collectives, const WaitPlan& plan) {
  std::map<std::tuple<std::string_view, int64_t, size_t>, std::vector<size_t>> alike;
  for (size_t i = 0; i < collectives.instances.size(); ++i) {
    const CollectiveInstance& instance = collectives.instances[i];
    if (!plan.HasWait(static_cast<uint32_t>(i)) || !instance.bytes || !instance.transfer_ns) continue;
    alike[{instance.name, *instance.bytes, instance.members.size()}].push_back(i);
  }
  std::vector<int64_t> excess(collectives.instances.size(), 0);
  for (const auto& [key, members] : alike) {
    if (members.size() < kMinimumAlike) continue;
    std::vector<int64_t> sorted;
    for (const size_t i : members) sorted.push_back(*collectives.instances[i].transfer_ns);
    std::sort(sorted.begin(), sorted.end());
    const int64_t median_ns = sorted[(sorted.size() - 1) / 2];
    const int64_t spread_ns = median_ns - sorted[sorted.size() / 10];
    const int64_t limit_ns = median_ns + std::max({median_ns / 2, 4 * spread_ns, kMinimumSlownessNs});
    for (const size_t i : members) {
      const int64_t transfer_ns = *collectives.instances[i].transfer_ns;
      if (transfer_ns > limit_ns) excess[i] = transfer_ns - median_ns;
    }
  }
  return excess;
}

}  // namespace lockstep::analysis
