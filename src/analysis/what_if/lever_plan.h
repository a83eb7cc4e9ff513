#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/graph/graph.h"
#include "analysis/job_graph/job_graph.h"
#include "analysis/what_if/what_if.h"
#include "model/run.h"

namespace lockstep::analysis {

/// Which levers are tried on a job's graphs.
struct LeverOptions {
  std::optional<std::set<std::string>> only = {};       ///< No levers but those of these ids.
  double speedup = 2;                                   ///< How many times faster "faster" is; above 1.
  std::map<uint32_t, std::vector<size_t>> stages = {};  ///< Rank indices of each pipeline stage; empty: no pipeline.
};

enum class LeverChange : uint8_t {
  kNothing,
  kMedianForAll,
  kMedianForRanks,
  kTransferFaster,
  kOverlap,
  kNameFaster,
  kNoLoading,
  kEvenStages
};

/// One lever before it is tried.
struct LeverPlan {
  Lever lever;
  LeverChange change = LeverChange::kNothing;
  std::vector<size_t> rank_indices = {};          ///< kMedianForRanks
  double speedup = 0;                             ///< kTransferFaster, kNameFaster: 0 = takes no time
  uint32_t label = 0;                             ///< kNameFaster
  graph::EdgeKind kind = graph::EdgeKind::kHost;  ///< kNameFaster
  std::vector<std::vector<size_t>> stages = {};   ///< kEvenStages
};

/// The levers for a job: for all ranks; for the 16 ranks, nodes and the stages with most work beyond their peers'; for
/// the eight kernels and operators with most time. `keys`: the steps that are simulated; `ranks`: the ranks that have
/// them.
std::vector<LeverPlan> MakeLeverPlans(const model::Run& run, const std::vector<RankGraphs>& by_rank_index,
                                      const std::vector<JobStepKey>& keys, const std::vector<size_t>& ranks,
                                      const LeverOptions& options);

}  // namespace lockstep::analysis
