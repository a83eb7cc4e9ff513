#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/result.h"

namespace lockstep::graph {

/// What the time of an edge is spent on.
enum class EdgeKind : uint8_t {
  kHost,        ///< A CPU thread works: operators, Python, the runtime's calls.
  kDataLoader,  ///< A CPU thread waits for, or makes, input.
  kCompute,     ///< A compute kernel; in traces of operations a compute operation.
  kCopy,        ///< A copy or set on a device.
  kTransfer,    ///< A collective or a send, after all members have arrived.
  kLaunch,      ///< From a launch call to the start of its device event.
  kKernelGap,   ///< From the end of a device event to the start of the next one of its stream.
  kDelay,       ///< Observed lateness that no dependency explains.
  kOrder,       ///< A dependency that takes no time itself: stream order, hand-over between threads, step order.
  kSync,        ///< The CPU, or a stream, waits for a device event to be done.
  kJoin,        ///< From a member's arrival to the instant when all members of a collective are there.
};
inline constexpr int kEdgeKindCount = 11;
const char* EdgeKindName(EdgeKind kind);  ///< "host", "data_loader", ...

using NodeId = uint32_t;
inline constexpr uint32_t kNone = UINT32_MAX;

/// `to` happens no earlier than `weight_ns` after `from`.
struct Edge {
  NodeId from = 0;
  NodeId to = 0;
  int64_t weight_ns = 0;   ///< May be negative only on kDelay (clock errors).
  uint32_t owner = kNone;  ///< An index of the caller's (rank index) whose time it is; kNone = none.
  uint32_t label = kNone;  ///< What it is: an index of the caller's (task, name).
  EdgeKind kind = EdgeKind::kOrder;
};

/// Events of a job (instants) and what each has to wait for: an acyclic graph whose nodes are numbered in topological
/// order, with the edges into each node side by side. Cost: 4 bytes a node and 32 an edge.
class Graph {
 public:
  size_t node_count() const { return first_in_.empty() ? 0 : first_in_.size() - 1; }
  size_t edge_count() const { return edges_.size(); }
  const Edge& edge(size_t index) const { return edges_[index]; }
  const std::vector<Edge>& edges() const { return edges_; }
  /// Edges into `node`: [first_in(node), first_in(node + 1)), in the order in which they were added.
  uint32_t first_in(NodeId node) const { return first_in_[node]; }

 private:
  friend class GraphBuilder;
  std::vector<Edge> edges_;         // by `to`
  std::vector<uint32_t> first_in_;  // node_count + 1
};

/// Collects nodes and edges in any order.
class GraphBuilder {
 public:
  NodeId AddNode() { return node_count_++; }
  /// Returns the first of `count` new nodes with consecutive ids.
  NodeId AddNodes(uint32_t count);
  void AddEdge(const Edge& edge) { edges_.push_back(edge); }
  uint32_t node_count() const { return node_count_; }

  /// Numbers the nodes topologically (among those that are free to come next, the one added first), and fills
  /// `new_ids`, by old id, unless it is null. The builder is empty afterwards. Errors: kInvalidArgument when edges form
  /// a cycle or name a node that does not exist. Cost: O((nodes + edges) log nodes).
  Result<Graph> Build(std::vector<NodeId>* new_ids = nullptr);

 private:
  uint32_t node_count_ = 0;
  std::vector<Edge> edges_;
};

/// A weight that takes the edge away: what it says is no longer waited for.
inline constexpr int64_t kRemoved = std::numeric_limits<int64_t>::min();

/// The earliest instant of every node: the latest of `time(from) + weight(edge index)` over the edges into it; 0 for a
/// node that nothing leads to. `weight` maps an edge's index to nanoseconds or kRemoved. Cost: O(nodes + edges).
template <typename Weight>
std::vector<int64_t> EarliestTimes(const Graph& graph, const Weight& weight) {
  std::vector<int64_t> times(graph.node_count(), 0);
  for (NodeId node = 0; node < times.size(); ++node) {
    int64_t latest_ns = kRemoved;
    for (uint32_t i = graph.first_in(node); i < graph.first_in(node + 1); ++i) {
      const int64_t weight_ns = weight(i);
      if (weight_ns == kRemoved) continue;
      const int64_t reached_ns = times[graph.edge(i).from] + weight_ns;
      if (reached_ns > latest_ns) latest_ns = reached_ns;
    }
    if (latest_ns != kRemoved) times[node] = latest_ns;
  }
  return times;
}
std::vector<int64_t> EarliestTimes(const Graph& graph);

/// The chain of edges that fixes the instant of `sink`, first edge first: from a node that nothing leads to, or that no
/// edge fixes, to `sink`. Of several edges that fix a node the first added one is taken. `times` as EarliestTimes gives
/// with the same weights.
template <typename Weight>
std::vector<uint32_t> CriticalEdges(const Graph& graph, const std::vector<int64_t>& times, NodeId sink,
                                    const Weight& weight) {
  std::vector<uint32_t> path;
  for (NodeId node = sink;;) {
    uint32_t fixing = kNone;
    for (uint32_t i = graph.first_in(node); i < graph.first_in(node + 1) && fixing == kNone; ++i) {
      const int64_t weight_ns = weight(i);
      if (weight_ns != kRemoved && times[graph.edge(i).from] + weight_ns == times[node]) fixing = i;
    }
    if (fixing == kNone) break;
    path.push_back(fixing);
    node = graph.edge(fixing).from;
  }
  return {path.rbegin(), path.rend()};
}
std::vector<uint32_t> CriticalEdges(const Graph& graph, const std::vector<int64_t>& times, NodeId sink);

/// How much later each node could happen without `sink` happening later: 0 on the critical path; INT64_MAX where `sink`
/// does not depend on the node. `times` as EarliestTimes(graph) gives. Cost: O(nodes + edges).
std::vector<int64_t> Slack(const Graph& graph, const std::vector<int64_t>& times, NodeId sink);

}  // namespace lockstep::graph
