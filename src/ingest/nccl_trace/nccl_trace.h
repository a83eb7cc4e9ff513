#pragma once

#include <string>

#include "base/result.h"
#include "ingest/bytes/byte_source.h"
#include "ingest/nccl_ring/nccl_ring.h"
#include "ingest/torch_trace/trace_reader.h"

namespace lockstep::ingest {

/// Reads what the NCCL profiler plugin keeps of a process as a trace: operations that have ended on a device track per
/// communicator (point-to-point on one beside it), what called them on a track of calls, both joined by correlation;
/// what the ring does not say in the ledger. Times are the host's wall clock. Out: TraceContent::is_nccl_ring; ranks of
/// communicators and of peers are still counted within the communicator (ResolveCommunicators).
/// Errors: those of ReadNcclRing; kIo, kLimitExceeded from `source`. Memory: the file, and the columns.
/// Source: docs/formats/nccl-ring.md#as-a-trace.
Result<TraceContent> ReadNcclTrace(ByteSource& source, const std::string& display_name,
                                   const TraceReaderOptions& options);

TraceContent ToTraceContent(const NcclRing& ring, const std::string& display_name);

/// What `ring` adds to a profiler's trace of the rank, which has the kernels: its operations on separate tracks that
/// are not counted, with algorithm, protocol and channels; counters.
void TurnIntoAnnotations(model::RankTrace* ring);

}  // namespace lockstep::ingest
