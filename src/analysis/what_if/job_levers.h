#pragma once

#include <set>
#include <string>
#include <vector>

#include "analysis/collectives.h"
#include "analysis/finding.h"
#include "analysis/job_graph/rank_graph.h"
#include "analysis/what_if/lever_plan.h"
#include "analysis/what_if/what_if.h"
#include "model/run.h"

namespace lockstep::analysis {

/// What-if on the graphs of a job's steps: the steps of the first window that most ranks have, each joined, simulated
/// with every lever, and dropped. Reads of `run` metadata only (ranks, clocks, hosts, names). Steps whose graph cannot
/// be joined are left out and counted in `ledger`. No steps: an empty result. The same for every number of threads.
/// Cost: O(levers x edges). Source: docs/metrics.md#what-if.
WhatIf SimulateJob(const model::Run& run, const Collectives& collectives, const std::vector<RankGraphs>& by_rank_index,
                   uint32_t thread_count, model::Ledger* ledger, const LeverOptions& options = {});

/// Ids of the levers that undo what the findings are about (a straggler at its peers' median, input always there, ...).
std::set<std::string> LeversOfFindings(const std::vector<Finding>& findings);

/// Gains of findings that a lever undoes from the simulation, where its own error is below 10 %; the others stay. Then
/// in order again.
void TakeSimulatedGains(const WhatIf& what_if, std::vector<Finding>* findings);

}  // namespace lockstep::analysis
