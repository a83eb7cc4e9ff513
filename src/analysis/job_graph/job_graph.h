#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/collectives.h"
#include "analysis/graph/graph.h"
#include "analysis/job_graph/rank_graph.h"
#include "base/result.h"
#include "model/run.h"

namespace lockstep::analysis {

/// A step of the whole job: the ranks' graphs on the aligned clock, joined where collectives joined the ranks.
/// `Edge::owner` is a rank index, `Edge::label` a NameId of the run (0: none).
struct JobStepGraph {
  int32_t window = 0;
  int64_t step = 0;
  graph::Graph graph;
  graph::NodeId source = 0;    ///< Start of the first rank's step: time 0.
  graph::NodeId sink = 0;      ///< End of the last rank's step.
  int64_t start_ns = 0;        ///< RunNs of `source`.
  int64_t observed_ns = 0;     ///< Last rank's end - first rank's start, as recorded.
  int64_t reproduced_ns = 0;   ///< The same by the unmodified graph; the difference is the graph's own error.
  size_t rank_count = 0;       ///< Ranks that have this step.
  size_t unmatched_count = 0;  ///< Collectives without a match in another rank's trace: they keep their length.
};

/// Where a step graph's pieces come from.
struct JobStepKey {
  int32_t window = 0;
  int64_t step = 0;
  std::vector<size_t> parts;  ///< By rank index: index into RankGraphs::steps; SIZE_MAX where the rank lacks the step.
};

/// The steps any rank has, by (window, step). A step number that a rank has twice counts once, the first time.
std::vector<JobStepKey> ListJobSteps(const model::Run& run, const std::vector<RankGraphs>& by_rank_index);

/// Finds the instance of a member by its rank and its times on the rank's own clock. Built once, used for all steps.
class CollectiveFinder {
 public:
  explicit CollectiveFinder(const Collectives& collectives);
  /// Index into Collectives::instances, or SIZE_MAX.
  size_t Find(size_t rank_index, int64_t trace_start_ns, int64_t trace_end_ns) const;

 private:
  struct Entry {
    size_t rank_index;
    int64_t start_ns;
    int64_t end_ns;
    size_t instance;
  };
  std::vector<Entry> entries_;
};

/// The reduction of one step. Reads of `run` metadata only (clocks, ranks). All members' arrivals lead to one node,
/// from there to every member's end; a member of a collective that does not synchronise and that ended before all were
/// there keeps its own length. Errors: kInvalidArgument when the edges form a circle (clocks or matches are wrong).
/// Cost: O(nodes + edges) log.
Result<JobStepGraph> JoinJobStep(const model::Run& run, const Collectives& collectives, const CollectiveFinder& finder,
                                 const std::vector<RankGraphs>& by_rank_index, const JobStepKey& key);

}  // namespace lockstep::analysis
