#pragma once

#include <vector>

#include "present/page/page_model.h"
#include "present/report/json_stream.h"

namespace lockstep::page {

// The tables of AnalyzeData, by what they are about. Rows keep the order of the analysis unless types.ts says
// otherwise; a pass that did not run gives an empty table.

/// breakdown, idle (streams of a rank added up), idle_host, imbalance, launch.
void AddTimeTables(const PageModel& model, report::JsonRow* json);
/// kernels, operators; cut to the limit.
void AddNameTables(const PageModel& model, report::JsonRow* json, std::vector<Reduction>* reductions);
/// stragglers, waits (largest first; cut to the limit), bandwidth.
void AddCommunicationTables(const PageModel& model, report::JsonRow* json, std::vector<Reduction>* reductions);
/// memory, memory_series.
void AddMemoryTables(const PageModel& model, report::JsonRow* json, std::vector<Reduction>* reductions);
/// span_links: from spans to those that they called, where both lie on tracks.
void AddSpanLinks(const PageModel& model, report::JsonRow* json, std::vector<Reduction>* reductions);
/// counters, each with its values over time.
void AddCounters(const PageModel& model, report::JsonRow* json, std::vector<Reduction>* reductions);

}  // namespace lockstep::page
