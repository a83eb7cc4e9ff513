#pragma once

#include <vector>

#include "base/utf8.h"
#include "fuzz.h"
#include "ingest/torch_trace/trace_reader.h"

namespace lockstep {

inline void CheckTrack(const model::Track& track, const model::NameTable& names) {
  const model::EventColumns& events = track.events;
  const bool correlated = track.lane == model::Lane::kRuntime || track.lane == model::Lane::kDevice;
  FUZZ_CHECK(events.duration_ns.size() == events.size() && events.name.size() == events.size());
  FUZZ_CHECK(events.category.size() == events.size() && events.correlation.size() == (correlated ? events.size() : 0));
  for (size_t i = 0; i < events.size(); ++i) {
    FUZZ_CHECK(events.duration_ns[i] >= 0);
    FUZZ_CHECK(events.name[i].value < names.size());
    FUZZ_CHECK(i == 0 || events.start_ns[i - 1] < events.start_ns[i] ||
               (events.start_ns[i - 1] == events.start_ns[i] && events.duration_ns[i - 1] >= events.duration_ns[i]));
  }
}

/// What the columns of an Nsight Systems export must be, whatever its form; at most `max_event_count` events.
inline void CheckContents(const Result<std::vector<ingest::TraceContent>>& contents, uint64_t max_event_count) {
  if (!contents) {
    FUZZ_CHECK(!contents.error().message.empty());
    return;
  }
  FUZZ_CHECK(!contents->empty());
  const model::NameTable& names = contents->front().names;
  for (uint32_t i = 0; i < names.size(); ++i) FUZZ_CHECK(ValidUtf8(names[NameId{i}]) == names[NameId{i}]);
  for (const ingest::TraceContent& content : *contents) {
    uint64_t count = 0;
    for (const model::Track& track : content.trace.tracks) {
      CheckTrack(track, names);
      count += track.events.size();
    }
    FUZZ_CHECK(count == content.trace.complete_event_count && count <= max_event_count);
    for (const model::CollectiveRecord& record : content.trace.collectives) FUZZ_CHECK(record.duration_ns >= 0);
  }
  for (const model::LedgerEntry& entry : contents->front().ledger.entries()) {
    FUZZ_CHECK(!entry.code.empty() && !entry.message.empty() && Printable(entry.message) == entry.message);
  }
}

}  // namespace lockstep
