#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "ingest/bytes/byte_source.h"
#include "ingest/torch_trace/trace_reader.h"

namespace lockstep::ingest {

/// Reads a trace in whatever format its first bytes show: PyTorch's JSON, Perfetto's packets, Nsight Systems' exports
/// and reports, liblockstep's spans, the NCCL profiler plugin's rings. `path`: the file whose bytes `source` gives as
/// they are, empty when they come from elsewhere. Out: not empty; one content per rank in the file, names and ledger in
/// the first. Errors: those of ReadTrace, ReadPerfettoTrace, ReadNsysExport and ReadNsysReport; kUnsupported for
/// formats that are known and not read.
Result<std::vector<TraceContent>> ReadAnyTrace(ByteSource& source, const std::string& path,
                                               const std::string& display_name, const TraceReaderOptions& options);

}  // namespace lockstep::ingest
