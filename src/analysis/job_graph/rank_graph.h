#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/graph/graph.h"
#include "analysis/rank_context.h"
#include "base/ids.h"

namespace lockstep::analysis {

/// An edge of a rank's graph; nodes are numbers of that graph alone.
struct RankEdge {
  uint32_t from = 0;
  uint32_t to = 0;
  int64_t weight_ns = 0;
  NameId label;  ///< Operator, runtime call or kernel whose time it is; the empty name if it belongs to none.
  graph::EdgeKind kind = graph::EdgeKind::kOrder;
};

/// One collective of the rank: what lies between its two nodes is for the reduction to say.
struct RankCollective {
  int64_t start_ns = 0;  ///< Trace clock, as CollectiveMember::trace_start_ns.
  int64_t end_ns = 0;
  uint32_t arrival = 0;
  uint32_t end = 0;
  NameId label;  ///< Name of the kernel or range.
};

/// What one rank did in one step as a graph of instants, contracted: a chain without side edges is one edge per (kind,
/// name) in a row, in order of first appearance, so that weights can still be changed by kind and name.
struct RankStepGraph {
  static constexpr uint32_t kStart = 0;  ///< Node at the start of the window.
  static constexpr uint32_t kEnd = 1;    ///< Node at the end of the window.

  int64_t step = 0;      ///< Number of the step; 0 for a trace without steps.
  int64_t start_ns = 0;  ///< The window (StepWindows), trace clock.
  int64_t end_ns = 0;
  uint32_t node_count = 2;
  std::vector<RankEdge> edges;
  std::vector<RankCollective> collectives;  ///< By start.
};

/// One rank's part of the job graph: plain values, the map half. The events are not needed afterwards.
struct RankGraphs {
  std::vector<RankStepGraph> steps;  ///< By start.
};

/// The graphs of all ranks, by rank index.
struct JobGraphs {
  static constexpr std::string_view kPass = "job_graph";

  std::vector<RankGraphs> ranks;
};

/// The rank's graphs, one per step (StepWindows; the whole window where the trace has no steps).
///
/// Host: time between the starts and ends of a thread's ranges belongs to the innermost range. A synchronising call
/// ends no earlier than what it waits for. A stretch of the main thread that holds another thread's ranges and no
/// event of its own waits for that thread (backward), one in which a CPU backend's collective ends waits for that.
/// Device: an event starts after its launch call began, after the previous one of its stream and, a collective, after
/// what the same device was given before it; the latest of these carries the observed delay as its weight.
/// Source: docs/metrics.md#job-graph. Cost: O(device events x streams + events of operator and runtime lanes).
RankGraphs MapJobGraph(const RankContext& context);

}  // namespace lockstep::analysis
