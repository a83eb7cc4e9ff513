#include "ingest/perfetto/perfetto_reader.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "ingest/perfetto/packet_reader.h"
#include "ingest/perfetto/packet_stream.h"
#include "ingest/perfetto/trace_builder.h"

namespace lockstep::ingest {

using perfetto::PacketReader;
using perfetto::PacketStream;

Result<std::vector<TraceContent>> ReadPerfettoTrace(ByteSource& source, const std::string& display_name,
                                                    const TraceReaderOptions& options) {
  constexpr uint64_t kReportedEvents = 4096;
  Damage damage;
  PacketStream stream(source, options.window_bytes, options.max_event_bytes, &damage);
  PacketReader reader(&damage);
  uint64_t reported = 0;
  while (const auto packet = stream.Next()) {
    reader.Read(*packet, stream.packet_offset());
    if (options.on_events && reader.event_count() - reported >= kReportedEvents) {
      options.on_events(reader.event_count() - reported);
      reported = reader.event_count();
    }
  }
  if (options.on_events && reader.event_count() > reported) options.on_events(reader.event_count() - reported);
  if (reader.event_count() == 0) {
    if (stream.stream_error()) {
      Error error = *stream.stream_error();
      if (error.file.empty()) error.file = display_name;
      return error;
    }
    return Error{.code = ErrorCode::kCorruptData,
                 .message =
                     "has no slices: not a trace that torch.profiler or lockstep merge wrote; give the files that "
                     "they wrote",
                 .file = display_name};
  }
  if (stream.stream_error())
    damage.Add(DamageKind::kDamagedStream, stream.read_bytes(), stream.stream_error()->message);
  std::vector<TraceContent> contents = perfetto::BuildTraces(&reader);
  for (TraceContent& content : contents) content.trace.source = display_name;
  if (contents.front().trace.json_bytes == 0) contents.front().trace.json_bytes = stream.read_bytes();
  damage.WriteTo(display_name, &contents.front().ledger);
  return contents;
}

}  // namespace lockstep::ingest
