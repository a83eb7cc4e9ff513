#pragma once

#include "analysis/analysis_result.h"
#include "model/run.h"
#include "present/report/json_stream.h"

namespace lockstep::report {

/// The members "what_if" and "bubbles" of `data`: docs/json.md; null where their pass did not run.
void WriteWhatIf(JsonDocument& json, const model::Run& run, const analysis::AnalysisResult& result);
void WriteBubbles(JsonDocument& json, const model::Run& run, const analysis::AnalysisResult& result);

}  // namespace lockstep::report
