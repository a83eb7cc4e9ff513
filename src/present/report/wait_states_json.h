#pragma once

#include "analysis/analysis_result.h"
#include "analysis/collectives.h"
#include "analysis/wait_states/wait_states.h"
#include "model/run.h"
#include "present/report/json_stream.h"

namespace lockstep::report {

/// The member "wait_states" of `data`: docs/json.md#datawait_states. Null when the pass did not run.
void WriteWaitStates(JsonDocument& json, const model::Run& run, const analysis::AnalysisResult& result);

/// The fields of one wait chain's link; also used by SQL tables.
void WriteHops(JsonRow& row, const model::Run& run, const analysis::Collectives& collectives,
               const analysis::WaitChain& chain);

}  // namespace lockstep::report
