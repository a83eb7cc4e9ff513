#pragma once

#include <string>

#include "analysis/what_if/operation_world.h"
#include "analysis/what_if/what_if.h"
#include "base/result.h"
#include "model/operation_trace.h"

namespace lockstep::analysis {

/// What-if on an operation trace: steps, levers, and the study's figures. What does not fit the schedule is counted in
/// `ledger`. `speedup`: how many times faster "faster" is. Errors: those of OperationGraph::Create; kFailedPrecondition
/// for a trace without communication (Primus). Cost: O((workers + stages + types) * operations). Source:
/// docs/metrics.md#what-if.
Result<WhatIf> SimulateOperations(const model::OperationTrace& trace, model::Ledger* ledger, double speedup = 2);

/// Every operation's work in the ideal world: of compute the mean, of communication the median, over all operations of
/// its type in all workers and steps.
std::vector<int64_t> IdealWork(const model::OperationTrace& trace, const OperationGraph& graph);

/// The study's figures. `ideal_ns`: as IdealWork gives.
StragglerStudy ComputeStudy(const model::OperationTrace& trace, const OperationGraph& graph,
                            const std::vector<int64_t>& ideal_ns, std::vector<WhatIfStep>* steps);

/// What each change would gain over what was observed without its delays; unranked.
std::vector<Lever> OperationLevers(const model::OperationTrace& trace, const OperationGraph& graph,
                                   const std::vector<int64_t>& ideal_ns, const StragglerStudy& study, double speedup);

/// The name under which the study counts an operation's type: sends and receives of a direction are one.
std::string StudyOperation(const std::string& type, OperationKind kind);

}  // namespace lockstep::analysis
