#pragma once

#include <set>
#include <utility>
#include <vector>

#include "ingest/bytes/trace_files.h"
#include "ingest/job/file_ingest.h"
#include "model/ledger.h"

namespace lockstep::ingest {

/// Finds traces that were exported from one recording in several forms (TraceContent::recording), of which one is kept:
/// the one with a wall clock, then the one with more events, then the first. It takes over a rank that only another
/// form knows. Out: (file, content) of the others, each file of them with a row in `ledger`: same_recording.
std::set<std::pair<size_t, size_t>> FindSameRecordings(const std::vector<TraceFile>& files,
                                                       std::vector<FileOutcome>* outcomes, model::Ledger* ledger);

}  // namespace lockstep::ingest
