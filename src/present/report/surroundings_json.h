#pragma once

#include "analysis/analysis_result.h"
#include "model/run.h"
#include "present/report/json_stream.h"

namespace lockstep::report {

// Members of `data` that hold more than tables: docs/json.md. Null where their pass did not run.

void WriteWaitStates(JsonDocument& json, const model::Run& run, const analysis::AnalysisResult& result);
void WriteCriticalPath(JsonDocument& json, const model::Run& run, const analysis::AnalysisResult& result);
void WriteWhatIf(JsonDocument& json, const model::Run& run, const analysis::AnalysisResult& result);
void WriteBubbles(JsonDocument& json, const model::Run& run, const analysis::AnalysisResult& result);

}  // namespace lockstep::report
