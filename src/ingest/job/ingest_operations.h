#pragma once

#include <vector>

#include "base/result.h"
#include "ingest/bytes/trace_files.h"
#include "ingest/job/ingest_run.h"
#include "model/run.h"

namespace lockstep::ingest {

/// Reads the files into `run` when they are operation traces, whose workers become ranks without tracks; false when
/// they are not, or cannot be opened; reading them as other traces then reports the error with the file's name. Errors:
/// kUnsupported where the options do not take operation traces; those of ReadOperations.
Result<bool> IngestOperations(const std::vector<TraceFile>& files, const IngestOptions& options, model::Run* run);

}  // namespace lockstep::ingest
