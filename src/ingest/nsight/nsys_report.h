#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ingest/bytes/byte_source.h"
#include "ingest/torch_trace/trace_reader.h"

namespace lockstep::ingest {

/// Whether `bytes` begin an SQLite database, as `nsys export -t sqlite` writes it.
bool StartsNsysExport(std::string_view bytes);

/// Reads an Nsight Systems SQLite export, of any schema, to columns like those of a PyTorch trace: kernels, copies and
/// sets, calls, synchronisations, NVTX ranges, MPI calls, operating system calls. In: `source` gives the database's
/// bytes; where `path` is not empty they are those of that file as it is, which is then read in place.
/// Out: one content per rank of the report, not empty, names and ledger in the first. Damage is read around and
/// counted; what is missing (kernels above all) is said. Errors: kCorruptData when it is no such export or holds no
/// events; kCancelled; those of `source`. Memory: the columns, StringIds. Format: docs/formats/nsight.md.
Result<std::vector<TraceContent>> ReadNsysExport(ByteSource& source, const std::string& path,
                                                 const std::string& display_name, const TraceReaderOptions& options);

}  // namespace lockstep::ingest
