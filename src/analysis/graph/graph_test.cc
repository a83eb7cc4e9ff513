#include "analysis/graph/graph.h"

#include <gtest/gtest.h>

namespace lockstep::graph {
namespace {

Edge Make(NodeId from, NodeId to, int64_t weight_ns, EdgeKind kind = EdgeKind::kHost) {
  Edge edge;
  edge.from = from;
  edge.to = to;
  edge.weight_ns = weight_ns;
  edge.kind = kind;
  return edge;
}

/// A host launches two kernels on two streams and waits for both.
Graph TwoStreams() {
  GraphBuilder builder;
  builder.AddNodes(4);
  builder.AddEdge(Make(0, 1, 10, EdgeKind::kLaunch));
  builder.AddEdge(Make(0, 2, 12, EdgeKind::kLaunch));
  builder.AddEdge(Make(1, 3, 100, EdgeKind::kCompute));
  builder.AddEdge(Make(2, 3, 40, EdgeKind::kCopy));
  return *builder.Build();
}

TEST(GraphTest, ANodeHappensWhenAllIsThere) {
  EXPECT_EQ(EarliestTimes(TwoStreams()), (std::vector<int64_t>{0, 10, 12, 110}));
}

TEST(GraphTest, NodesAreNumberedInTopologicalOrder) {
  GraphBuilder builder;
  builder.AddNodes(3);
  builder.AddEdge(Make(2, 0, 5));
  builder.AddEdge(Make(0, 1, 7));
  std::vector<NodeId> new_ids;
  const Graph graph = *builder.Build(&new_ids);
  EXPECT_EQ(new_ids, (std::vector<NodeId>{1, 2, 0}));
  EXPECT_EQ(EarliestTimes(graph), (std::vector<int64_t>{0, 5, 12}));
}

TEST(GraphTest, ACircleIsRefused) {
  GraphBuilder builder;
  builder.AddNodes(3);
  builder.AddEdge(Make(0, 1, 1));
  builder.AddEdge(Make(1, 2, 1));
  builder.AddEdge(Make(2, 1, 1));
  const auto graph = builder.Build();
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code, ErrorCode::kInvalidArgument);
}

TEST(GraphTest, AnEdgeToNowhereIsRefused) {
  GraphBuilder builder;
  builder.AddNode();
  builder.AddEdge(Make(0, 1, 1));
  EXPECT_FALSE(builder.Build());
}

TEST(GraphTest, TheCriticalPathLeadsThroughWhatFixesTheEnd) {
  const Graph graph = TwoStreams();
  const std::vector<int64_t> times = EarliestTimes(graph);
  const std::vector<uint32_t> path = CriticalEdges(graph, times, 3);
  ASSERT_EQ(path.size(), 2u);
  EXPECT_EQ(graph.edge(path[0]).kind, EdgeKind::kLaunch);
  EXPECT_EQ(graph.edge(path[1]).kind, EdgeKind::kCompute);
}

TEST(GraphTest, SlackIsWhatANodeMayBeLaterByWithoutHarm) {
  const Graph graph = TwoStreams();
  EXPECT_EQ(Slack(graph, EarliestTimes(graph), 3), (std::vector<int64_t>{0, 0, 58, 0}));
}

TEST(GraphTest, WhatTheEndDoesNotDependOnHasUnboundedSlack) {
  GraphBuilder builder;
  builder.AddNodes(3);
  builder.AddEdge(Make(0, 1, 10));
  builder.AddEdge(Make(0, 2, 90));
  const Graph graph = *builder.Build();
  EXPECT_EQ(Slack(graph, EarliestTimes(graph), 1), (std::vector<int64_t>{0, 0, INT64_MAX}));
}

TEST(GraphTest, AnotherWeightMovesThePath) {
  const Graph graph = TwoStreams();
  const auto faster = [&graph](uint32_t i) {
    return graph.edge(i).kind == EdgeKind::kCompute ? graph.edge(i).weight_ns / 10 : graph.edge(i).weight_ns;
  };
  const std::vector<int64_t> times = EarliestTimes(graph, faster);
  EXPECT_EQ(times[3], 52);
  const std::vector<uint32_t> path = CriticalEdges(graph, times, 3, faster);
  ASSERT_EQ(path.size(), 2u);
  EXPECT_EQ(graph.edge(path[1]).kind, EdgeKind::kCopy);
}

TEST(GraphTest, ARemovedEdgeIsNotWaitedFor) {
  const Graph graph = TwoStreams();
  const auto without = [&graph](uint32_t i) {
    return graph.edge(i).kind == EdgeKind::kCompute ? kRemoved : graph.edge(i).weight_ns;
  };
  EXPECT_EQ(EarliestTimes(graph, without)[3], 52);
}

}  // namespace
}  // namespace lockstep::graph
