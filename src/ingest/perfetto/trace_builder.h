#pragma once

#include <vector>

#include "ingest/perfetto/packet_reader.h"
#include "ingest/torch_trace/trace_reader.h"

namespace lockstep::ingest::perfetto {

/// Makes rank traces of what was read: one per process of a file that lockstep wrote, else one. Empties `reader`.
/// Out: not empty; names and ledger of all stand in the first.
std::vector<TraceContent> BuildTraces(PacketReader* reader);

}  // namespace lockstep::ingest::perfetto
