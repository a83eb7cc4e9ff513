#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "model/run.h"

namespace lockstep::ingest::perfetto {

/// What a track of a file that lockstep wrote holds.
struct TrackPlace {
  enum class Kind : uint8_t { kEvents, kSteps, kMemory } kind = Kind::kEvents;
  model::Lane lane = model::Lane::kOther;
  int64_t process_id = 0;
  int64_t thread_id = 0;
  std::string thread_name;
};

/// What lockstep's metadata says of one process track: the rank's window as it was before it was written.
struct ProcessFacts {
  model::RankTrace trace;  ///< Without events; `clock` is how well the times were corrected, with no offset left.
  std::map<int64_t, TrackPlace> track_by_thread;  ///< By the made-up thread id.
  std::optional<uint64_t> event_count;
};

/// Reads the attributes "lockstep" (out: what was added to all times) and "lockstep.process.N". Nothing when the text
/// is not what it should be. Format: docs/formats/perfetto.md#metadata.
std::optional<int64_t> ReadRunFacts(std::string_view json);
std::optional<ProcessFacts> ReadProcessFacts(std::string_view json);

}  // namespace lockstep::ingest::perfetto
