#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ingest/bytes/byte_source.h"
#include "ingest/torch_trace/trace_reader.h"

namespace lockstep::ingest {

/// Bytes of a file's beginning that StartsNsysJson wants to see.
inline constexpr size_t kNsysJsonHeadBytes = 4096;

/// Whether `head` begins what `nsys export -t json` writes (a message a line, to 2024) or `-t jsonlines` (a row of the
/// SQLite form's tables a line).
bool StartsNsysJson(std::string_view head);

/// Reads either as ReadNsysExport reads the SQLite form: the same tables, the same joins. Messages hold besides the
/// environment of every process, and so which ranks a report of several processes has; of it only the launchers'
/// variables are looked at. Errors: kCorruptData when nothing in it is known; kCancelled; kIo; those of `source`.
/// Memory: as there, and the longest line; tables above 64 MiB lie in TMPDIR. Format: docs/formats/nsight.md.
Result<std::vector<TraceContent>> ReadNsysJson(ByteSource& source, const std::string& display_name,
                                               const TraceReaderOptions& options);

}  // namespace lockstep::ingest
