#include "analysis/graph/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace lockstep::graph {
namespace {

constexpr const char* kNames[kEdgeKindCount] = {"host",       "data_loader", "compute", "copy", "transfer", "launch",
                                                "kernel_gap", "delay",       "order",   "sync", "join"};

/// Row starts of a table of `keys` sorted by key: counting sort's first half.
std::vector<uint32_t> RowStarts(uint32_t row_count, const std::vector<Edge>& edges, NodeId Edge::*key) {
  std::vector<uint32_t> starts(size_t{row_count} + 1, 0);
  for (const Edge& edge : edges) ++starts[edge.*key + 1];
  for (uint32_t i = 0; i < row_count; ++i) starts[i + 1] += starts[i];
  return starts;
}

/// New numbers by old id; fewer than `node_count` were given out where edges form a cycle.
struct Order {
  std::vector<NodeId> new_ids;
  uint32_t given_count = 0;
};

Order TopologicalOrder(uint32_t node_count, const std::vector<Edge>& edges) {
  const std::vector<uint32_t> starts = RowStarts(node_count, edges, &Edge::from);
  std::vector<NodeId> targets(edges.size());
  std::vector<uint32_t> fill(starts.begin(), starts.end() - 1);
  std::vector<uint32_t> waiting_for(node_count, 0);
  for (const Edge& edge : edges) {
    targets[fill[edge.from]++] = edge.to;
    ++waiting_for[edge.to];
  }
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  for (NodeId node = 0; node < node_count; ++node) {
    if (waiting_for[node] == 0) ready.push(node);
  }
  Order order;
  order.new_ids.assign(node_count, kNone);
  while (!ready.empty()) {
    const NodeId node = ready.top();
    ready.pop();
    order.new_ids[node] = order.given_count++;
    for (uint32_t i = starts[node]; i < starts[node + 1]; ++i) {
      if (--waiting_for[targets[i]] == 0) ready.push(targets[i]);
    }
  }
  return order;
}

}  // namespace

const char* EdgeKindName(EdgeKind kind) { return kNames[static_cast<size_t>(kind)]; }

NodeId GraphBuilder::AddNodes(uint32_t count) {
  const NodeId first = node_count_;
  node_count_ += count;
  return first;
}

Result<Graph> GraphBuilder::Build(std::vector<NodeId>* new_ids) {
  std::vector<Edge> edges = std::exchange(edges_, {});
  const uint32_t node_count = std::exchange(node_count_, 0);
  for (const Edge& edge : edges) {
    if (edge.from >= node_count || edge.to >= node_count) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("an edge leads from node {} to node {}, of {} nodes", edge.from, edge.to, node_count)};
    }
  }
  Order order = TopologicalOrder(node_count, edges);
  if (order.given_count < node_count) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} of {} instants wait for each other in a circle",
                                                          node_count - order.given_count, node_count)};
  }
  for (Edge& edge : edges) {
    edge.from = order.new_ids[edge.from];
    edge.to = order.new_ids[edge.to];
  }
  Graph graph;
  graph.first_in_ = RowStarts(node_count, edges, &Edge::to);
  graph.edges_.resize(edges.size());
  std::vector<uint32_t> fill(graph.first_in_.begin(), graph.first_in_.end() - 1);
  for (const Edge& edge : edges) graph.edges_[fill[edge.to]++] = edge;
  if (new_ids != nullptr) *new_ids = std::move(order.new_ids);
  return graph;
}

std::vector<int64_t> EarliestTimes(const Graph& graph) {
  return EarliestTimes(graph, [&graph](uint32_t i) { return graph.edge(i).weight_ns; });
}

std::vector<uint32_t> CriticalEdges(const Graph& graph, const std::vector<int64_t>& times, NodeId sink) {
  return CriticalEdges(graph, times, sink, [&graph](uint32_t i) { return graph.edge(i).weight_ns; });
}

std::vector<int64_t> Slack(const Graph& graph, const std::vector<int64_t>& times, NodeId sink) {
  constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> slack(graph.node_count(), kUnbounded);
  slack[sink] = 0;
  for (NodeId node = sink + 1; node-- > 0;) {
    if (slack[node] == kUnbounded) continue;
    for (uint32_t i = graph.first_in(node); i < graph.first_in(node + 1); ++i) {
      const Edge& edge = graph.edge(i);
      const int64_t edge_slack_ns = times[node] - times[edge.from] - edge.weight_ns;
      slack[edge.from] = std::min(slack[edge.from], slack[node] + edge_slack_ns);
    }
  }
  return slack;
}

}  // namespace lockstep::graph
