#pragma once

#include <string>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/rank_context.h"
#include "base/result.h"
#include "model/run.h"

namespace lockstep::analysis {

/// Runs passes (`only` empty = all the usual ones; their needs come along) and the clock alignment, which fills
/// run->ranks[i].clock and adds to run->ledger. Ranks are worked on in parallel; the result does not depend on the
/// number of threads. A pass that fails leaves its tables empty and a row in the ledger; the others still answer.
/// Errors: kInvalidArgument for an unknown pass name (the message has the nearest one).
Result<AnalysisResult> Analyze(model::Run* run, const AnalysisOptions& options, const std::vector<std::string>& only);

}  // namespace lockstep::analysis
