#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "ingest/bytes/trace_files.h"
#include "ingest/job/file_ingest.h"
#include "model/run.h"

namespace lockstep::ingest {

/// Where a rank's trace came from.
struct TracePlace {
  size_t file = 0;     ///< Into the files.
  size_t content = 0;  ///< Into FileOutcome::contents.
};

/// What IngestRun does once every file was read: ranks and windows are decided, ledgers put together. Reads no events,
/// so traces may be without. In: `outcomes` parallel to `files`; `run` has names and what is in the ledger already.
/// Out: the run's ranks, and in `places`, where wanted, where each came from. Errors: kCorruptData when not one file is
/// a trace.
Status AssembleRun(const std::vector<TraceFile>& files, std::vector<FileOutcome> outcomes, model::Run* run,
                   std::vector<TracePlace>* places = nullptr);

}  // namespace lockstep::ingest
