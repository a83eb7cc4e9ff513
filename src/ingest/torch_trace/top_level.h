#pragma once

#include <string_view>

#include "ingest/torch_trace/damage.h"
#include "ingest/torch_trace/event_text.h"
#include "ingest/torch_trace/trace_assembler.h"

namespace lockstep::ingest {

/// Reads one member of the trace's top-level object other than traceEvents: distributedInfo, deviceProperties,
/// baseTimeNanoseconds, host_name, lockstep (docs/formats/perfetto.md#metadata); others are ignored. `raw` is the
/// value's text (strings without quotes).
void ReadTopLevelMember(std::string_view key, ValueKind kind, std::string_view raw, uint64_t byte_offset,
                        Damage* damage, TraceAssembler* assembler);

}  // namespace lockstep::ingest
