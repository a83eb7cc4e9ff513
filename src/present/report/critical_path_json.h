#pragma once

#include "analysis/analysis_result.h"
#include "present/report/json_stream.h"

namespace lockstep::report {

/// The member "critical_path" of `data`: docs/json.md#datacritical_path.
void WriteCriticalPath(JsonDocument& json, const model::Run& run, const analysis::AnalysisResult& result);

}  // namespace lockstep::report
