#pragma once

#include <string>
#include <vector>

#include "analysis/analysis_result.h"
#include "base/result.h"
#include "model/run.h"

namespace lockstep::analysis {

/// What Analyze does for a run of operation traces: of the passes only what_if and bubbles can answer, and both run
/// unless `only` leaves them out. Adds to run->ledger. Errors: kInvalidArgument for an unknown pass name.
Result<AnalysisResult> AnalyzeOperations(model::Run* run, const AnalysisOptions& options,
                                         const std::vector<std::string>& only);

/// Who slows the job down and what it costs, in words, from the study's figures; and what its pipeline idles.
/// Source: docs/metrics.md#findings.
std::vector<Finding> FindOperationFindings(const model::OperationTrace& trace, const AnalysisResult& result);

}  // namespace lockstep::analysis
