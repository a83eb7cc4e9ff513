// The reader of Perfetto traces. The first byte chooses the size of the window and the limit for one packet; the rest
// is the file. Columns must be whole and sorted, and windows of different sizes must give the same columns.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz.h"
#include "ingest/bytes/byte_source.h"
#include "ingest/perfetto/perfetto_reader.h"

namespace {

using namespace lockstep;
using namespace lockstep::ingest;

std::optional<std::vector<TraceContent>> Read(std::string_view bytes, const TraceReaderOptions& options) {
  auto source = OpenMemory(std::string(bytes), {.max_output_bytes = uint64_t{16} << 20, .max_ratio = 2000});
  if (!source) return std::nullopt;
  auto contents = ReadPerfettoTrace(**source, "fuzz.pftrace", options);
  if (!contents) return std::nullopt;
  return std::move(*contents);
}

void CheckTrace(const model::RankTrace& trace, const model::NameTable& names) {
  uint64_t count = 0;
  for (const model::Track& track : trace.tracks) {
    const model::EventColumns& events = track.events;
    FUZZ_CHECK(events.duration_ns.size() == events.size() && events.name.size() == events.size());
    FUZZ_CHECK(events.category.size() == events.size());
    FUZZ_CHECK(events.correlation.empty() || events.correlation.size() == events.size());
    FUZZ_CHECK(track.thread_name.value < names.size());
    count += events.size();
    for (size_t i = 0; i < events.size(); ++i) {
      FUZZ_CHECK(events.duration_ns[i] >= 0);
      FUZZ_CHECK(events.name[i].value < names.size());
      FUZZ_CHECK(static_cast<int>(events.category[i]) < model::kCategoryCount);
      FUZZ_CHECK(i == 0 || events.start_ns[i - 1] <= events.start_ns[i]);
    }
  }
  FUZZ_CHECK(count == trace.complete_event_count);
  for (size_t i = 1; i < trace.memory.size(); ++i) FUZZ_CHECK(trace.memory.time_ns[i - 1] <= trace.memory.time_ns[i]);
  for (size_t i = 0; i < trace.collectives.size(); ++i) {
    FUZZ_CHECK(trace.collectives[i].duration_ns >= 0);
    FUZZ_CHECK(i == 0 || trace.collectives[i - 1].start_ns <= trace.collectives[i].start_ns);
  }
}

void CheckSame(const model::RankTrace& a, const model::RankTrace& b) {
  FUZZ_CHECK(a.rank == b.rank && a.window == b.window && a.event_count == b.event_count);
  FUZZ_CHECK(a.first_ns == b.first_ns && a.last_ns == b.last_ns);
  FUZZ_CHECK(a.tracks.size() == b.tracks.size() && a.collectives.size() == b.collectives.size());
  for (size_t t = 0; t < a.tracks.size(); ++t) {
    const model::EventColumns &x = a.tracks[t].events, &y = b.tracks[t].events;
    FUZZ_CHECK(std::equal(x.start_ns.begin(), x.start_ns.end(), y.start_ns.begin(), y.start_ns.end()));
    FUZZ_CHECK(std::equal(x.duration_ns.begin(), x.duration_ns.end(), y.duration_ns.begin(), y.duration_ns.end()));
    FUZZ_CHECK(std::equal(x.name.begin(), x.name.end(), y.name.begin(), y.name.end()));
    FUZZ_CHECK(std::equal(x.correlation.begin(), x.correlation.end(), y.correlation.begin(), y.correlation.end()));
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  TraceReaderOptions options;
  options.window_bytes = size_t{64} << data[0] % 8;
  const auto contents = Read(bytes, options);
  options.window_bytes = size_t{1} << 20;
  const auto large = Read(bytes, options);
  FUZZ_CHECK(contents.has_value() == large.has_value());
  if (!contents) return 0;
  FUZZ_CHECK(contents->size() == large->size());
  for (size_t i = 0; i < contents->size(); ++i) {
    CheckTrace((*contents)[i].trace, contents->front().names);
    CheckSame((*contents)[i].trace, (*large)[i].trace);
  }
  return 0;
}
