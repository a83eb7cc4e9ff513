#pragma once

#include <string_view>

#include "analysis/analysis_result.h"
#include "model/run.h"
#include "programs/python/array.h"

namespace lockstep::python {

/// The pass that fills a table; empty for ranks, clocks, findings and ledger, which are always there.
std::string_view PassOfTable(std::string_view name);

/// The table `name` of TableSpecs(), as typed columns: the rows of the command's JSON, in the same order. A table whose
/// pass did not run has no rows.
/// Cost: O(cells). Throws std::logic_error for a name that is none of TableSpecs().
Table BuildTable(std::string_view name, const model::Run& run, const analysis::AnalysisResult& result);

}  // namespace lockstep::python
