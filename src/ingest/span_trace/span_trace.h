#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "ingest/bytes/byte_source.h"
#include "ingest/torch_trace/trace_reader.h"

namespace lockstep::ingest {

bool StartsSpanTrace(std::string_view head);

/// Reads what liblockstep wrote: spans as user annotations of their threads, steps as ProfilerStep#N, counters,
/// requests and spans with a trace context; times are the host's wall clock. A file of a process that was killed, or
/// still runs, is read to its last record; a span that had not ended ends with the recording. Out:
/// TraceContent::is_span_trace. Errors: kCorruptData, kUnsupported (another version); kIo, kLimitExceeded from `source`
/// when nothing was read before. Memory: the file, and the columns. Format: docs/formats/span-trace.md.
Result<TraceContent> ReadSpanTrace(ByteSource& source, const std::string& display_name,
                                   const TraceReaderOptions& options);

}  // namespace lockstep::ingest
