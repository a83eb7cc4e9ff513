#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "ingest/bytes/byte_source.h"
#include "ingest/torch_trace/trace_reader.h"

namespace lockstep::ingest {

/// Reads a Perfetto trace (protobuf packets) to columns, in one pass over windows of bytes: slices, GPU render stages,
/// allocator events, with PyTorch's args. Out: one trace for a file of PyTorch's exporter; one per rank window for a
/// file of `lockstep merge`, whose times are the aligned clock (RankTrace::clock_is_aligned). The names of all of them
/// stand in the first one's table; so does the ledger. Damage is skipped and counted in the ledger with its byte
/// offset; a cut file is read to its last whole packet. Errors: kCorruptData when there is no slice in the file; kIo,
/// kLimitExceeded from `source` when nothing was read before. Memory: the columns of all tracks, and while they are
/// sorted once more those of one track. Format: docs/formats/perfetto.md.
Result<std::vector<TraceContent>> ReadPerfettoTrace(ByteSource& source, const std::string& display_name,
                                                    const TraceReaderOptions& options);

}  // namespace lockstep::ingest
