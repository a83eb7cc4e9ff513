#include "analysis/critical_path/range_path.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "analysis/critical_path/range_events.h"
#include "analysis/graph/graph.h"
#include "analysis/host_role.h"
#include "analysis/job_graph/sync_call.h"

namespace lockstep::analysis {
namespace {

using graph::NodeId;
using model::Category;

/// That tool takes a longer gap of a stream for something else than the device's delay.
constexpr int64_t kLongestGapNs = 1'500'000;

constexpr const char* kTypeNames[kRangeEdgeTypeCount] = {"operator", "launch_delay", "dependency",
                                                         "kernel_kernel_delay", "sync"};
constexpr const char* kBoundNames[kRangeBoundCount] = {"none",          "cpu",           "data_loading", "compute",
                                                       "communication", "kernel_kernel", "launch"};

/// Calls whose time that tool takes for waiting alone. A cudaMemcpyAsync is none of them.
bool IsBlockingCall(std::string_view name) {
  if (name == "cudaEventQuery" || name == "hipEventQuery") return true;
  return SyncCallOf(name) != SyncCall::kNone && !name.ends_with("MemcpyAsync");
}

class RangeGraph {
 public:
  RangeGraph(const RankContext& context, RangeEvents found)
      : context_(context), found_(std::move(found)), roles_(context.names()) {}

  RangePath Run() {
    for (const auto& [first, end] : found_.threads) AddThread(first, end);
    AddDevice();
    return Solve();
  }

 private:
  struct Link {
    NodeId from = 0;
    NodeId to = 0;
    RangeEdgeType type = RangeEdgeType::kOperator;
    int64_t weight_ns = 0;
    uint32_t of = kNoRangeEvent;
  };

  static NodeId StartNode(uint32_t event) { return 2 * event; }
  static NodeId EndNode(uint32_t event) { return 2 * event + 1; }
  const RangeEvent& event(uint32_t index) const { return found_.events[index]; }
  int64_t TimeOf(NodeId node) const { return node % 2 == 0 ? event(node / 2).start_ns : event(node / 2).end_ns; }

  void Add(NodeId from, NodeId to, RangeEdgeType type, uint32_t of, bool weightless = false) {
    const bool weighs = type != RangeEdgeType::kDependency && type != RangeEdgeType::kSync && !weightless;
    // Clocks of host and device, and ranges that outlast the one around them, give small negative lengths.
    const Link link{from, to, type, weighs ? std::max<int64_t>(0, TimeOf(to) - TimeOf(from)) : 0, of};
    const auto [place, is_new] = link_of_nodes_.try_emplace((uint64_t{from} << 32) | to, links_.size());
    if (is_new) {
      links_.push_back(link);
    } else {
      links_[place->second] = link;
    }
  }

  /// The call stack of a thread, walked down and up.
  void AddThread(uint32_t first, uint32_t end) {
    std::vector<uint32_t> stack;
    NodeId last = graph::kNone;      // previous instant, inside a top-level range
    NodeId last_top = graph::kNone;  // end of the previous top-level range
    const auto leave = [&] {
      const uint32_t leaving = stack.back();
      const bool inner = last == StartNode(leaving);
      const bool blocking = event(leaving).category != Category::kCpuOp && IsBlockingCall(NameOf(leaving));
      Add(last, EndNode(leaving), RangeEdgeType::kOperator, inner ? last / 2 : leaving, blocking);
      stack.pop_back();
      last = stack.empty() ? graph::kNone : EndNode(leaving);
      if (stack.empty()) last_top = EndNode(leaving);
    };
    for (uint32_t i = first; i < end; ++i) {
      if (!event(i).in_range) continue;
      while (!stack.empty() && event(stack.back()).end_ns <= event(i).start_ns) leave();
      if (stack.empty() && last_top != graph::kNone)
        Add(last_top, StartNode(i), RangeEdgeType::kDependency, kNoRangeEvent);
      if (last != graph::kNone) Add(last, StartNode(i), RangeEdgeType::kOperator, stack.back());
      stack.push_back(i);
      last = StartNode(i);
    }
    while (!stack.empty()) leave();
  }

  std::string_view NameOf(uint32_t index) const { return context_.names()[event(index).name]; }

  /// Launches and starts of one stream of the whole trace: how long its queue is.
  struct Queue {
    std::vector<int64_t> launches;
    std::vector<int64_t> starts;
    /// Launched at or before `time_ns`, less those that started; at a launch, `started_too` off: starts at the very
    /// same time come after it.
    int64_t LengthAt(int64_t time_ns, bool started_too) const {
      const auto launched = std::upper_bound(launches.begin(), launches.end(), time_ns) - launches.begin();
      const auto started = started_too ? std::upper_bound(starts.begin(), starts.end(), time_ns) - starts.begin()
                                       : std::lower_bound(starts.begin(), starts.end(), time_ns) - starts.begin();
      return launched - started;
    }
  };
  using Place = std::pair<int64_t, int64_t>;  ///< (device, stream)

  Place PlaceOf(uint32_t index) const { return {event(index).process_id, event(index).thread_id}; }

  struct Item {
    int64_t time_ns = 0;
    uint32_t device_event = kNoRangeEvent;
    uint32_t sync = 0;
  };

  /// Device events by start, synchronisations by end.
  std::vector<Item> ItemsInOrder() {
    std::vector<Item> items;
    for (uint32_t i = found_.first_device; i < found_.events.size(); ++i) {
      Queue& queue = queues_[PlaceOf(i)];
      queue.launches.push_back(event(event(i).launch).start_ns);
      queue.starts.push_back(event(i).start_ns);
      if (event(i).in_range) items.push_back({event(i).start_ns, i, 0});
    }
    for (auto& entry : queues_) {
      std::sort(entry.second.launches.begin(), entry.second.launches.end());
      std::sort(entry.second.starts.begin(), entry.second.starts.end());
    }
    for (uint32_t i = 0; i < found_.syncs.size(); ++i) items.push_back({found_.syncs[i].end_ns, kNoRangeEvent, i});
    std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.time_ns < b.time_ns; });
    return items;
  }

  void AddDevice() {
    for (const Item& item : ItemsInOrder()) {
      if (item.device_event == kNoRangeEvent) {
        AddSync(found_.syncs[item.sync]);
      } else {
        AddDeviceEvent(item.device_event);
      }
    }
  }

  void AddSync(const RangeSync& sync) {
    switch (sync.kind) {
      case SyncKind::kStreamWaitEvent:
        if (sync.source != kNoRangeEvent && sync.target != kNoRangeEvent) awaited_[sync.target] = sync.source;
        return;
      case SyncKind::kEvent:
        if (sync.source != kNoRangeEvent && event(sync.source).in_range)
          Add(EndNode(sync.source), EndNode(sync.call), RangeEdgeType::kSync, kNoRangeEvent);
        return;
      case SyncKind::kStream:
      case SyncKind::kContext:
        for (const auto& [place, last] : last_of_stream_) {
          const bool waited_for = sync.kind == SyncKind::kContext
                                      ? place.first == sync.device
                                      : place == Place{sync.device, sync.stream.value_or(-1)};
          if (waited_for) Add(EndNode(last), EndNode(sync.call), RangeEdgeType::kSync, kNoRangeEvent);
        }
        return;
      case SyncKind::kOther: return;
    }
  }

  void AddDeviceEvent(uint32_t index) {
    Add(StartNode(index), EndNode(index), RangeEdgeType::kOperator, index);
    const int64_t launch_ns = event(event(index).launch).start_ns;
    const auto awaited = awaited_.find(index);
    const bool waits = awaited != awaited_.end() && event(awaited->second).in_range;
    const int64_t awaited_end_ns = waits ? event(awaited->second).end_ns : INT64_MIN;
    if (waits) Add(EndNode(awaited->second), StartNode(index), RangeEdgeType::kSync, kNoRangeEvent);
    const auto previous = last_of_stream_.find(PlaceOf(index));
    const bool follows = previous != last_of_stream_.end();
    const int64_t previous_end_ns = follows ? event(previous->second).end_ns : INT64_MIN;

    const Queue& queue = queues_.at(PlaceOf(index));
    const bool was_empty = queue.LengthAt(launch_ns, false) == 1 && queue.LengthAt(event(index).start_ns, true) == 0;
    const bool by_launch = was_empty && previous_end_ns < launch_ns && awaited_end_ns < launch_ns;
    const bool near = follows && event(index).start_ns - previous_end_ns < kLongestGapNs;
    if (!by_launch && near && (!waits || awaited_end_ns < previous_end_ns))
      Add(EndNode(previous->second), StartNode(index), RangeEdgeType::kKernelKernelDelay, previous->second);
    Add(StartNode(event(index).launch), StartNode(index), RangeEdgeType::kLaunchDelay, kNoRangeEvent, !by_launch);
    last_of_stream_[PlaceOf(index)] = index;
  }

  RangeBound BoundOf(const Link& link) {
    switch (link.type) {
      case RangeEdgeType::kKernelKernelDelay: return RangeBound::kKernelKernel;
      case RangeEdgeType::kLaunchDelay: return RangeBound::kLaunch;
      case RangeEdgeType::kDependency:
      case RangeEdgeType::kSync: return RangeBound::kNone;
      case RangeEdgeType::kOperator: break;
    }
    const RangeEvent& of = event(link.of);
    if (of.on_device())
      return context_.shared->is_communication[of.name.value] ? RangeBound::kCommunication : RangeBound::kCompute;
    return roles_[of.name] == HostRole::kDataLoader ? RangeBound::kDataLoading : RangeBound::kCpu;
  }

  RangeInstant InstantOf(NodeId node) const {
    const RangeEvent& of = event(node / 2);
    return {of.name, of.start_ns, of.end_ns - of.start_ns, node % 2 == 0, of.on_device()};
  }

  RangeEdge EdgeOf(const Link& link, bool critical) {
    RangeEdge edge{link.type, BoundOf(link), critical, link.weight_ns, InstantOf(link.from), InstantOf(link.to), {}};
    if (link.of != kNoRangeEvent) edge.of = event(link.of).name;
    return edge;
  }

  /// The first of the instants reached last, in the order in which instants become free, as that tool takes it.
  static NodeId Sink(const graph::Graph& graph, const std::vector<int64_t>& times) {
    std::vector<uint32_t> generations(graph.node_count(), 0);
    NodeId sink = 0;
    for (NodeId node = 0; node < graph.node_count(); ++node) {
      for (uint32_t i = graph.first_in(node); i < graph.first_in(node + 1); ++i)
        generations[node] = std::max(generations[node], generations[graph.edge(i).from] + 1);
      if (times[node] > times[sink] || (times[node] == times[sink] && generations[node] < generations[sink]))
        sink = node;
    }
    return sink;
  }

  RangePath Solve() {
    RangePath path;
    path.rank_index = context_.rank_index;
    path.start_ns = found_.start_ns;
    path.end_ns = found_.end_ns;
    std::set<NodeId> nodes;
    graph::GraphBuilder builder;
    builder.AddNodes(static_cast<uint32_t>(2 * found_.events.size()));
    for (uint32_t i = 0; i < links_.size(); ++i) {
      const Link& link = links_[i];
      nodes.insert({link.from, link.to});
      ++path.edge_counts[static_cast<size_t>(link.type)];
      builder.AddEdge({link.from, link.to, link.weight_ns, graph::kNone, i, graph::EdgeKind::kOrder});
    }
    path.node_count = nodes.size();
    std::vector<bool> critical(links_.size(), false);
    std::set<uint32_t> critical_events;
    const auto graph = builder.Build();
    if (graph && !links_.empty()) {
      const std::vector<int64_t> times = graph::EarliestTimes(*graph);
      for (const uint32_t index : graph::CriticalEdges(*graph, times, Sink(*graph, times))) {
        const uint32_t i = graph->edge(index).label;
        const Link& link = links_[i];
        critical[i] = true;
        path.edges.push_back(EdgeOf(link, true));
        path.length_ns += link.weight_ns;
        path.bound_ns[static_cast<size_t>(path.edges.back().bound)] += link.weight_ns;
        critical_events.insert({link.from / 2, link.to / 2});
      }
      path.critical_node_count = path.edges.size() + 1;
      path.critical_event_count = critical_events.size();
    }
    for (uint32_t i = 0; i < links_.size(); ++i) {
      if (!critical[i]) path.edges.push_back(EdgeOf(links_[i], false));
    }
    return path;
  }

  const RankContext& context_;
  RangeEvents found_;
  HostRoles roles_;
  std::vector<Link> links_;
  std::unordered_map<uint64_t, size_t> link_of_nodes_;
  std::map<Place, Queue> queues_;
  std::map<Place, uint32_t> last_of_stream_;
  std::unordered_map<uint32_t, uint32_t> awaited_;  // device event: what its stream was told to wait for
};

}  // namespace

const char* RangeEdgeTypeName(RangeEdgeType type) { return kTypeNames[static_cast<size_t>(type)]; }
const char* RangeBoundName(RangeBound bound) { return kBoundNames[static_cast<size_t>(bound)]; }

std::optional<RangePath> FindRangePath(const RankContext& context, const std::string& range, int64_t instance) {
  auto found = CollectRangeEvents(context, range, instance);
  if (!found) return std::nullopt;
  return RangeGraph(context, std::move(*found)).Run();
}

}  // namespace lockstep::analysis
