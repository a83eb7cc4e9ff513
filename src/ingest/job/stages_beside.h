#pragma once

#include <vector>

#include "ingest/bytes/trace_files.h"
#include "model/run.h"

namespace lockstep::ingest {

/// Is this file the answer that `lockstep run --stages` leaves beside its span traces? It is no trace of anything.
bool IsStagesSummary(const TraceFile& file);

/// Run::stages, from the span traces among `files` that lie outside of archives. Where profilers' traces lie beside
/// them, the ledger says so, and what the stages lack.
void ReadStagesBeside(const std::vector<TraceFile>& files, model::Run* run);

}  // namespace lockstep::ingest
