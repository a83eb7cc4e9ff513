#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "analysis/collective_kind.h"
#include "analysis/collective_size.h"
#include "analysis/collectives.h"
#include "analysis/stamping_error.h"

namespace lockstep::analysis {
namespace {

constexpr int64_t kLeastUnrecordedWaitNs = 50'000;

/// Sum of two clocks' uncertainties; absent when one is unknown.
std::optional<int64_t> Uncertainty(const model::Run& run, size_t a, size_t b) {
  if (a == b) return 0;
  const std::optional<int64_t>& first = run.ranks[a].clock.uncertainty_ns;
  const std::optional<int64_t>& second = run.ranks[b].clock.uncertainty_ns;
  if (!first || !second) return std::nullopt;
  return *first + *second;
}

bool IsPossible(const model::Run& run, const CollectiveInstance& instance, const CollectiveMember& last) {
  if (!instance.synchronising) return true;
  return std::all_of(instance.members.begin(), instance.members.end(), [&](const CollectiveMember& member) {
    const std::optional<int64_t> uncertainty = Uncertainty(run, member.rank_index, last.rank_index);
    return !uncertainty || member.end_ns + *uncertainty + kStampingErrorNs >= last.arrival_ns;
  });
}

void SetBandwidth(CollectiveInstance* instance) {
  if (!instance->bytes || !instance->transfer_ns || *instance->transfer_ns <= 0) return;
  instance->algbw_bytes_per_s =
      static_cast<double>(*instance->bytes) * 1e9 / static_cast<double>(*instance->transfer_ns);
  const auto members =
      instance->group_size ? int64_t{*instance->group_size} : static_cast<int64_t>(instance->members.size());
  if (const auto factor = BusBandwidthFactor(ClassifyCollective(instance->name), members)) {
    instance->busbw_bytes_per_s = *instance->algbw_bytes_per_s * *factor;
  }
}

void TimeInstance(const model::Run& run, CollectiveInstance* instance) {
  instance->transfer_ns.reset();
  instance->algbw_bytes_per_s.reset();
  instance->busbw_bytes_per_s.reset();
  instance->last_rank_index.reset();
  instance->unrecorded_wait_ns = 0;
  const CollectiveMember* last = nullptr;
  for (CollectiveMember& member : instance->members) {
    const model::ClockMap& clock = run.ranks[member.rank_index].clock;
    member.wait_ns.reset();
    member.arrival_ns = clock.ToRun(member.trace_start_ns);
    member.end_ns = clock.ToRun(member.trace_end_ns);
    if (last == nullptr || member.arrival_ns > last->arrival_ns) last = &member;
  }
  const bool tells_waits =
      instance->complete || (instance->some_unrecorded && instance->synchronising && instance->members.size() >= 2);
  if (last == nullptr || !tells_waits || !IsPossible(run, *instance, *last)) return;

  int64_t shortest = std::numeric_limits<int64_t>::max();
  int64_t last_end = std::numeric_limits<int64_t>::min();
  const CollectiveMember* second = nullptr;
  for (CollectiveMember& member : instance->members) {
    const int64_t wait_ns = last->arrival_ns - member.arrival_ns;
    member.wait_ns = instance->synchronising ? wait_ns : std::min(wait_ns, member.end_ns - member.arrival_ns);
    shortest = std::min(shortest, member.duration_ns);
    last_end = std::max(last_end, member.end_ns);
    if (&member != last && (second == nullptr || member.arrival_ns > second->arrival_ns)) second = &member;
  }
  if (instance->complete) {
    instance->transfer_ns = instance->synchronising ? shortest : std::max<int64_t>(last_end - last->arrival_ns, 0);
    SetBandwidth(instance);
  }
  if (second == nullptr) return;
  const std::optional<int64_t> uncertainty = Uncertainty(run, last->rank_index, second->rank_index);
  if (uncertainty && last->arrival_ns - second->arrival_ns > *uncertainty) instance->last_rank_index = last->rank_index;
}

/// Recordings that begin apart make their first collective look like a long wait: who was still starting the profiler
/// came last. So it is where the ranks' arrivals, each counted from the begin of its own recording, lie far closer
/// together than the arrivals themselves, and the last to arrive is the last that began. Source:
/// docs/metrics.md#capture-start.
bool IsCaptureStart(const model::Run& run, const CollectiveInstance& instance) {
  constexpr int64_t kLeastSkewNs = 1'000'000;
  constexpr int64_t kLeastRatio = 4;
  struct Spread {
    int64_t low = std::numeric_limits<int64_t>::max();
    int64_t high = std::numeric_limits<int64_t>::min();
    void Add(int64_t value) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
    int64_t length() const { return high - low; }
  };
  Spread arrivals;
  Spread begins;
  Spread leads;
  int64_t last_begin_ns = 0;
  for (const CollectiveMember& member : instance.members) {
    const model::RankTrace& trace = run.ranks[member.rank_index];
    if (!trace.first_ns) return false;
    const int64_t begin_ns = trace.clock.ToRun(*trace.first_ns);
    if (member.arrival_ns > arrivals.high) last_begin_ns = begin_ns;
    arrivals.Add(member.arrival_ns);
    begins.Add(begin_ns);
    leads.Add(member.arrival_ns - begin_ns);
  }
  return arrivals.length() >= kLeastSkewNs && leads.low >= 0 && last_begin_ns == begins.high &&
         arrivals.length() >= kLeastRatio * leads.length();
}

/// The first collective of every group: a rank whose recording only began late does not count as waited for.
void DropCaptureStarts(const model::Run& run, Collectives* collectives) {
  if (std::none_of(run.ranks.begin(), run.ranks.end(), [](const auto& trace) { return trace.began_midway; })) return;
  std::set<std::pair<int32_t, std::string_view>> seen;
  for (CollectiveInstance& instance : collectives->instances) {
    if (!seen.emplace(instance.window, instance.group).second) continue;
    const auto last = std::max_element(instance.members.begin(), instance.members.end(),
                                       [](const auto& a, const auto& b) { return a.arrival_ns < b.arrival_ns; });
    if (last == instance.members.end() || !run.ranks[last->rank_index].began_midway) continue;
    if (!IsCaptureStart(run, instance)) continue;
    for (CollectiveMember& member : instance.members) member.wait_ns.reset();
    instance.last_rank_index.reset();
    instance.transfer_ns.reset();
    instance.algbw_bytes_per_s.reset();
    instance.busbw_bytes_per_s.reset();
  }
}

/// The last rank of all waits for no other, so its part takes as long as the transfer. If the last of the recorded
/// ranks takes longer than that, an unrecorded rank arrived later still. The time of a transfer is the shortest part of
/// any comparable one. Source: docs/metrics.md#some-ranks-recorded.
void FindUnrecordedLast(Collectives* collectives) {
  std::map<std::tuple<std::string_view, std::string_view, int64_t>, int64_t> shortest_ns;
  const auto key = [](const CollectiveInstance& instance) {
    return std::tuple(std::string_view(instance.group), std::string_view(instance.name), instance.bytes.value_or(-1));
  };
  for (const CollectiveInstance& instance : collectives->instances) {
    if (!instance.some_unrecorded) continue;
    int64_t& least_ns = shortest_ns.emplace(key(instance), INT64_MAX).first->second;
    for (const CollectiveMember& member : instance.members) least_ns = std::min(least_ns, member.duration_ns);
  }
  for (CollectiveInstance& instance : collectives->instances) {
    if (!instance.some_unrecorded) continue;
    // If the instance has no wait times, the parts of its members tell nothing either: they are 0, or contain waiting
    // for the profiler.
    if (instance.synchronising && instance.members.size() >= 2 && !TellsWaits(instance)) continue;
    const int64_t transfer_ns = shortest_ns[key(instance)];
    const auto last = std::min_element(instance.members.begin(), instance.members.end(),
                                       [](const auto& a, const auto& b) { return a.duration_ns < b.duration_ns; });
    if (last->duration_ns - transfer_ns <= std::max(transfer_ns / 2, kLeastUnrecordedWaitNs)) continue;
    instance.unrecorded_wait_ns = last->duration_ns - transfer_ns;
    instance.last_rank_index.reset();
  }
}

int64_t FirstArrival(const CollectiveInstance& instance) {
  int64_t first = std::numeric_limits<int64_t>::max();
  for (const CollectiveMember& member : instance.members) first = std::min(first, member.arrival_ns);
  return first;
}

}  // namespace

bool TellsWaits(const CollectiveInstance& instance) {
  return instance.members.size() >= 2 && instance.members.front().wait_ns.has_value();
}

void SortInstances(Collectives* collectives) {
  std::vector<CollectiveInstance>& instances = collectives->instances;
  std::vector<std::pair<int64_t, size_t>> keys;  // (first arrival, index)
  keys.reserve(instances.size());
  for (size_t i = 0; i < instances.size(); ++i) keys.emplace_back(FirstArrival(instances[i]), i);
  const auto before = [&instances](const auto& a, const auto& b) {
    const CollectiveInstance& x = instances[a.second];
    const CollectiveInstance& y = instances[b.second];
    return std::tie(x.window, a.first, x.group, x.sequence, a.second) <
           std::tie(y.window, b.first, y.group, y.sequence, b.second);
  };
  if (std::is_sorted(keys.begin(), keys.end(), before)) return;
  std::sort(keys.begin(), keys.end(), before);
  std::vector<CollectiveInstance> sorted;
  sorted.reserve(instances.size());
  for (const auto& key : keys) sorted.push_back(std::move(instances[key.second]));
  instances = std::move(sorted);
}

void TimeCollectives(const model::Run& run, Collectives* collectives) {
  for (CollectiveInstance& instance : collectives->instances) TimeInstance(run, &instance);
  SortInstances(collectives);
  DropCaptureStarts(run, collectives);
  FindUnrecordedLast(collectives);
}

}  // namespace lockstep::analysis
