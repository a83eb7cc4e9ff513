#pragma once

#include "analysis/analysis_result.h"
#include "model/run.h"
#include "present/report/json_stream.h"

namespace lockstep::report {

/// The member "wait_states" of `data`: docs/json.md#datawait_states. Null when the pass did not run.
void WriteWaitStates(JsonDocument& json, const model::Run& run, const analysis::AnalysisResult& result);

}  // namespace lockstep::report
