#pragma once

#include <string>

#include "ingest/torch_trace/trace_reader.h"

namespace lockstep::ingest {

/// Takes out events that begin hours before or after most others, or end hours after them: CUPTI gives kernels whose
/// times it lost the time 0, and conversions of clocks go wrong by days and years. What is taken out is counted in the
/// ledger
/// ("lost_times"), with `source` as its file. Nothing is taken out where no half of the events lies together.
/// Cost: O(tracks) where all is well.
void SetAsideLostTimes(const std::string& source, TraceContent* content);

}  // namespace lockstep::ingest
