#pragma once

#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/finding.h"
#include "analysis/rank_context.h"
#include "analysis/table.h"

namespace lockstep::analysis {

/// Findings from the tables; thresholds in AnalysisOptions. Source: docs/metrics.md#findings.
std::vector<Finding> ComputeFindings(const RunContext& shared, const AnalysisResult& result);

Table FindingTable();

}  // namespace lockstep::analysis
