#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/critical_path/range_path.h"
#include "analysis/graph/graph.h"
#include "analysis/job_graph/job_graph.h"
#include "base/ids.h"
#include "model/ledger.h"

namespace lockstep::analysis {

/// Time on the critical path of one step, by whose it is and what it is.
struct CriticalPathRow {
  size_t rank_index = 0;
  int64_t step = 0;
  graph::EdgeKind kind = graph::EdgeKind::kHost;
  NameId name;  ///< Operator, call, kernel; empty if it belongs to none.
  int64_t path_ns = 0;
};

/// A piece of the path. A chain whose order was not kept is one piece per kind and name, in order of first appearance.
struct CriticalPathPiece {
  size_t rank_index = 0;
  graph::EdgeKind kind = graph::EdgeKind::kHost;
  NameId name;
  int64_t start_ns = 0;  ///< RunNs.
  int64_t duration_ns = 0;
};

/// How much later all of a rank's work could be done, bit by bit, before the step ended later: the least slack of any
/// of its work.
struct RankSlack {
  size_t rank_index = 0;
  int64_t slack_ns = 0;
};

struct CriticalPathStep {
  int32_t window = 0;
  int64_t step = 0;
  int64_t start_ns = 0;  ///< RunNs: start of the first rank's step.
  int64_t step_ns = 0;   ///< As recorded: last rank's end - first rank's start.
  int64_t path_ns = 0;   ///< Sum of the path. path_ns - step_ns is the graph's own error.
  size_t rank_count = 0;
  size_t unmatched_count = 0;                               ///< Collectives that no other rank's trace answers.
  std::array<int64_t, graph::kEdgeKindCount> kind_ns = {};  ///< The path by kind; sums to path_ns.
  std::vector<CriticalPathPiece> pieces;                    ///< In order of time.
  std::vector<RankSlack> slack;                             ///< By rank index; ranks without any work are left out.
};

/// Least slack of an operator, call or kernel over all ranks and steps.
struct NameSlack {
  graph::EdgeKind kind = graph::EdgeKind::kCompute;
  NameId name;
  int64_t slack_ns = 0;
};

struct CriticalPath {
  static constexpr std::string_view kPass = "critical_path";

  std::vector<CriticalPathRow> rows;      ///< By (window, step), then longest first; each step's sum to its path_ns.
  std::vector<CriticalPathStep> steps;    ///< By (window, step).
  std::vector<NameSlack> names;           ///< Compute, copies, transfers: least slack first, then by name.
  std::vector<model::LedgerEntry> notes;  ///< Steps that have no path.
  std::vector<RangePath> range_paths;     ///< Where AnalysisOptions::critical_path_range asks for them; by rank index.
};

/// Critical path of each step over all ranks, the reduction: `by_rank_index` are the ranks' MapJobGraph.
/// `thread_count` as in AnalysisOptions; it changes nothing in the result. Source: docs/metrics.md#critical-path.
/// Cost: O(nodes + edges) log per step, one step's graph per thread at a time.
CriticalPath FindCriticalPath(const model::Run& run, const Collectives& collectives,
                              const std::vector<RankGraphs>& by_rank_index, uint32_t thread_count);

}  // namespace lockstep::analysis
