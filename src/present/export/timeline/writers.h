#pragma once

#include <memory>

#include "model/name_table.h"
#include "present/export/timeline/event_writer.h"
#include "present/export/timeline/output_file.h"

namespace lockstep::timeline {

/// Writes Perfetto packets. Every track is a packet sequence of its own, with names interned and times as differences
/// from packet to packet; memory holds one packet and 16 bytes per name of the run.
std::unique_ptr<EventWriter> MakePerfettoWriter(const model::NameTable& names, ByteSink* out);

/// Writes Chrome's trace event format, one event a line. Times are microseconds since the first event, with three
/// decimals, exact; the first event's own time stands in baseTimeNanoseconds.
std::unique_ptr<EventWriter> MakeChromeWriter(const model::NameTable& names, ByteSink* out);

}  // namespace lockstep::timeline
