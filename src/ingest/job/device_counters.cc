#include "ingest/job/device_counters.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace lockstep::ingest {
namespace {

using model::CounterSeries;
using model::RankTrace;

/// (window, host, ordinal)
using DeviceKey = std::tuple<int32_t, std::string, DeviceOrdinal>;

constexpr size_t kSeveral = SIZE_MAX;

/// Which trace uses a device; kSeveral where ordinals do not tell ranks apart (each sees its own device as 0).
std::map<DeviceKey, size_t> FindUsers(const model::Run& run) {
  std::map<DeviceKey, size_t> users;
  for (size_t i = 0; i < run.ranks.size(); ++i) {
    for (const DeviceOrdinal ordinal : run.ranks[i].DeviceOrdinals()) {
      const auto [user, is_new] = users.try_emplace({run.ranks[i].window, run.ranks[i].host, ordinal}, i);
      if (!is_new) user->second = kSeveral;
    }
  }
  return users;
}

void SortCounters(RankTrace* trace) {
  std::stable_sort(trace->counters.begin(), trace->counters.end(), [](const CounterSeries& a, const CounterSeries& b) {
    return std::tie(a.device, a.name) < std::tie(b.device, b.name);
  });
}

}  // namespace

void PlaceDeviceCounters(model::Run* run) {
  const bool any = std::any_of(run->ranks.begin(), run->ranks.end(), [](const auto& t) { return !t.counters.empty(); });
  if (!any) return;
  const std::map<DeviceKey, size_t> users = FindUsers(*run);
  for (size_t i = 0; i < run->ranks.size(); ++i) {
    RankTrace& from = run->ranks[i];
    std::vector<CounterSeries> kept;
    for (CounterSeries& series : from.counters) {
      size_t owner = i;
      if (series.device) {
        const auto user = users.find({from.window, from.host, *series.device});
        if (user != users.end() && user->second != kSeveral) owner = user->second;
      }
      (owner == i ? kept : run->ranks[owner].counters).push_back(std::move(series));
    }
    from.counters = std::move(kept);
  }
  for (RankTrace& trace : run->ranks) SortCounters(&trace);
}

}  // namespace lockstep::ingest
