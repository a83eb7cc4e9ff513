#include "present/report/job_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "present/report/format.h"

namespace lockstep::report {
namespace {

// Most first.
std::string DevicesPhrase(const model::Run& run) {
  std::map<std::string, size_t> counts;
  size_t without = 0;
  for (const model::RankTrace& trace : run.ranks) {
    if (trace.window != run.ranks.front().window) continue;
    const RankDevice device = DeviceOf(trace);
    device.ordinals.empty() ? ++without : ++counts[device.name.empty() ? "unnamed device" : device.name];
  }
  if (counts.empty()) return "";
  std::vector<std::pair<std::string, size_t>> kinds(counts.begin(), counts.end());
  std::stable_sort(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (size_t i = 0; i < kinds.size() && i < 3; ++i) {
    text += fmt::format("{}{} x {}", i == 0 ? "" : ", ", FormatCount(kinds[i].second), kinds[i].first);
  }
  if (without > 0) text += fmt::format(", {} without device events", without);
  return text;
}

}  // namespace

RankDevice DeviceOf(const model::RankTrace& trace) {
  RankDevice found;
  std::set<int32_t> ordinals;
  for (const DeviceOrdinal ordinal : trace.DeviceOrdinals()) ordinals.insert(ordinal.value);
  found.ordinals.assign(ordinals.begin(), ordinals.end());
  for (const model::Device& device : trace.devices) {
    if (ordinals.count(device.ordinal.value) != 0) {
      found.name = device.name;
      break;
    }
  }
  return found;
}

JobFacts FactsOf(const model::Run& run) {
  JobFacts facts;
  std::set<int32_t> ranks;
  std::set<int32_t> windows;
  std::set<std::string> hosts;
  for (const model::RankTrace& trace : run.ranks) {
    ranks.insert(trace.rank.value);
    windows.insert(trace.window);
    if (!trace.host.empty()) hosts.insert(trace.host);
    if (trace.world_size && *trace.world_size > facts.world_size.value_or(0)) facts.world_size = trace.world_size;
    if (facts.backend.empty()) facts.backend = trace.backend;
    facts.event_count += trace.event_count;
  }
  facts.rank_count = ranks.size();
  facts.window_count = windows.size();
  facts.hosts.assign(hosts.begin(), hosts.end());
  facts.devices = DevicesPhrase(run);
  if (facts.world_size) {
    // A file may claim any world size: count without walking it, list only the first ones.
    const auto below =
        std::count_if(ranks.begin(), ranks.end(), [&](int32_t rank) { return rank >= 0 && rank < *facts.world_size; });
    facts.missing_rank_count = static_cast<size_t>(*facts.world_size) - static_cast<size_t>(below);
    for (int32_t rank = 0; rank < *facts.world_size && facts.missing_ranks.size() < 1000; ++rank) {
      if (ranks.count(rank) == 0) facts.missing_ranks.push_back(rank);
    }
  }
  return facts;
}

}  // namespace lockstep::report
