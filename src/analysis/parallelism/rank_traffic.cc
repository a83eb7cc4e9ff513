#include "analysis/parallelism/rank_traffic.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "analysis/collective_calls.h"
#include "analysis/collective_groups.h"
#include "analysis/collective_size.h"
#include "analysis/cpu_activity.h"
#include "analysis/device_tracks.h"
#include "analysis/interval_cover.h"
#include "analysis/pass.h"
#include "analysis/step_windows.h"

namespace lockstep::analysis {
namespace {

/// Hooks at the end of the backward pass (FSDP's root callback, DDP's last bucket) run just behind autograd's ranges.
constexpr int64_t kPhaseSlackNs = 200'000;

/// When a rank computes.
class ComputeCover {
 public:
  explicit ComputeCover(const RankContext& context) {
    const std::vector<DeviceTracks> devices = FindDeviceTracks(context.trace());
    if (devices.empty()) {
      const CpuActivity activity = FindCpuActivity(context);
      if (activity.any) Add(MakeCursors(activity));
      first_ns_ = activity.first_ns;
      last_ns_ = activity.last_ns;
      on_device_ = activity.any ? std::optional<bool>(false) : std::nullopt;
      return;
    }
    on_device_ = true;
    DeviceTracks all;  // Ranks with several devices are rare; what one of them computes hides the other's waiting.
    for (const DeviceTracks& device : devices)
      all.tracks.insert(all.tracks.end(), device.tracks.begin(), device.tracks.end());
    Add(MakeCursors(context, all));
  }

  /// Time of [start, end) in which nothing is computed.
  int64_t Exposed(int64_t start_ns, int64_t end_ns) const {
    return end_ns <= start_ns ? 0 : end_ns - start_ns - compute_.Covered(start_ns, end_ns);
  }
  int64_t span_ns() const { return std::max<int64_t>(last_ns_ - first_ns_, 0); }
  std::optional<bool> on_device() const { return on_device_; }

 private:
  template <typename Cursor>
  void Add(std::vector<Cursor> cursors) {
    bool first = true;
    MergeByStart(cursors, [&](const Cursor& cursor) {
      const int64_t start_ns = cursor.start();
      const int64_t end_ns = cursor.end();
      first_ns_ = first ? start_ns : std::min(first_ns_, start_ns);
      last_ns_ = first ? end_ns : std::max(last_ns_, end_ns);
      first = false;
      if (cursor.activity() != Activity::kCompute) return;
      compute_.Add(start_ns, end_ns);
    });
  }

  IntervalCover compute_;
  int64_t first_ns_ = 0;
  int64_t last_ns_ = 0;
  std::optional<bool> on_device_;
};

class TrafficMapper {
 public:
  TrafficMapper(const RankContext& context, RankTraffic* traffic)
      : trace_(context.trace()), names_(context.names()), traffic_(traffic) {}

  void Add(const CollectiveCall& call, const ComputeCover& cover) {
    TrafficCall row;
    row.group = GroupOf(call);
    row.kind = call.kind;
    row.start_ns = call.start_ns;
    row.duration_ns = call.duration_ns;
    row.exposed_ns = cover.Exposed(row.start_ns, row.end_ns());
    const std::optional<int64_t> element_bytes = ElementBytes(names_[call.dtype]);
    row.bytes = CollectiveBytes(call.kind, {call.in_elements, call.out_elements, element_bytes, call.group_size});
    row.in_bytes = Bytes(call.in_elements, element_bytes);
    row.out_bytes = Bytes(call.out_elements, element_bytes);
    row.step = call.step;
    row.peer = call.peer;
    if (call.issue) {
      row.issue_ns = call.issue->trace_ns;
      const size_t phase = PhaseAround(traffic_->phases, *row.issue_ns, kPhaseSlackNs);
      if (phase != SIZE_MAX) row.phase = static_cast<uint32_t>(phase);
    }
    traffic_->calls.push_back(row);
  }

  /// Unions of each group's calls.
  void Measure(const ComputeCover& cover) {
    std::vector<std::pair<int64_t, uint32_t>> order;  // (start, call)
    for (size_t i = 0; i < traffic_->calls.size(); ++i) {
      order.emplace_back(traffic_->calls[i].start_ns, static_cast<uint32_t>(i));
    }
    std::sort(order.begin(), order.end());
    std::vector<int64_t> covered_ns(traffic_->groups.size(), INT64_MIN);
    for (const auto& [start_ns, i] : order) {
      const TrafficCall& call = traffic_->calls[i];
      const int64_t from_ns = std::max(start_ns, covered_ns[call.group]);
      if (call.end_ns() <= from_ns) continue;
      traffic_->groups[call.group].communication_ns += call.end_ns() - from_ns;
      traffic_->groups[call.group].exposed_ns += cover.Exposed(from_ns, call.end_ns());
      covered_ns[call.group] = call.end_ns();
    }
  }

 private:
  using Key = std::tuple<uint32_t, uint32_t, uint64_t, bool>;

  static std::optional<int64_t> Bytes(std::optional<int64_t> elements, std::optional<int64_t> element_bytes) {
    int64_t bytes = 0;
    if (!elements || !element_bytes || *elements < 0 || __builtin_mul_overflow(*elements, *element_bytes, &bytes)) {
      return std::nullopt;
    }
    return bytes;
  }

  uint32_t GroupOf(const CollectiveCall& call) {
    // Old kernels without a name are told apart by their communicator.
    const uint64_t communicator = call.group_name.value == 0 ? call.communicator_id.value_or(0) : 0;
    const Key key{call.group_name.value, call.group_ranks.value, communicator, call.on_device};
    const auto [slot, is_new] = index_.emplace(key, static_cast<uint32_t>(traffic_->groups.size()));
    if (is_new) traffic_->groups.push_back(Describe(call));
    return slot->second;
  }

  TrafficGroup Describe(const CollectiveCall& call) const {
    TrafficGroup group;
    group.name = names_[call.group_name];
    group.on_device = call.on_device;
    group.description = names_[call.group_description];
    if (group.name.empty()) group.communicator_id = call.communicator_id;
    if (const auto ranks = ParseGroupRanks(names_[call.group_ranks])) group.members = *ranks;
    for (const model::ProcessGroup& described : trace_.groups) {
      const bool is_it = group.name.empty() && !group.communicator_id
                             ? trace_.groups.size() == 1
                             : !group.name.empty() && described.name == group.name;
      if (!is_it) continue;
      if (group.members.empty()) group.members = described.ranks;
      if (group.description.empty() || group.description == "undefined") group.description = described.description;
      group.backend = described.backend;
      if (described.size) group.size = described.size;
    }
    std::sort(group.members.begin(), group.members.end());
    group.members.erase(std::unique(group.members.begin(), group.members.end()), group.members.end());
    if (!group.members.empty()) {
      group.size = static_cast<int32_t>(group.members.size());
    } else if (call.group_size) {
      group.size = call.group_size;
    } else if (!group.size && group.name.empty() && !group.communicator_id) {
      group.size = trace_.world_size;
    }
    return group;
  }

  const model::RankTrace& trace_;
  const model::NameTable& names_;
  RankTraffic* traffic_;
  std::map<Key, uint32_t> index_;
};

}  // namespace

RankTraffic MapTraffic(const RankContext& context) {
  RankTraffic traffic;
  traffic.rank_index = context.rank_index;
  const std::vector<CollectiveCall> calls = FindCollectiveCalls(*context.shared, context.rank_index);
  if (calls.empty()) return traffic;
  traffic.phases = FindBackwardPhases(context);
  for (const model::Track& track : context.trace().tracks) {
    traffic.has_cpu_operators = traffic.has_cpu_operators || track.lane == model::Lane::kOperators;
  }
  for (const model::Step& step : StepWindows(context)) {
    traffic.steps.push_back({step.start_ns, step.end_ns});
    traffic.step_numbers.push_back(step.number);
  }
  const model::MemoryColumns& memory = context.trace().memory;
  const auto raise = [](int64_t bytes, std::optional<int64_t>* peak) {
    if (bytes >= 0) *peak = std::max(peak->value_or(0), bytes);
  };
  for (size_t i = 0; i < memory.size(); ++i) {
    if (memory.device[i] < 0) continue;
    raise(memory.allocated_bytes[i], &traffic.peak_allocated_bytes);
    raise(memory.reserved_bytes[i], &traffic.peak_reserved_bytes);
  }
  const ComputeCover cover(context);
  traffic.span_ns = cover.span_ns();
  traffic.on_device = cover.on_device();
  TrafficMapper mapper(context, &traffic);
  traffic.calls.reserve(calls.size());
  for (const CollectiveCall& call : calls) mapper.Add(call, cover);
  mapper.Measure(cover);
  return traffic;
}

Pass RankTrafficPass() {
  return ReducingPass<Traffic, RankTraffic>({.kind = PassKind::kInternal}, MapTraffic,
                                            [](PassContext&, std::vector<RankTraffic> ranks) {
                                              for (size_t i = 0; i < ranks.size(); ++i) ranks[i].rank_index = i;
                                              return Traffic{std::move(ranks)};
                                            });
}

}  // namespace lockstep::analysis
