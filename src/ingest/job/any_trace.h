#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "ingest/bytes/byte_source.h"
#include "ingest/torch_trace/trace_reader.h"

namespace lockstep::ingest {

/// Reads a trace in whatever format its first bytes show: PyTorch's JSON or Perfetto's packets. Out: not empty; one
/// content per rank in the file, names and ledger in the first. Errors: those of ReadTrace and ReadPerfettoTrace.
Result<std::vector<TraceContent>> ReadAnyTrace(ByteSource& source, const std::string& display_name,
                                               const TraceReaderOptions& options);

}  // namespace lockstep::ingest
