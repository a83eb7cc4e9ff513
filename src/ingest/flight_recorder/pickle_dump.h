#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ingest/flight_recorder/flight_recorder.h"

namespace lockstep::ingest {

enum class PlainEntryPath : uint8_t { kUsed, kUnused };

/// Reads a dump that is a pickle. See ReadFlightRecords, whose errors these are.
/// `path`: for tests; PlainEntries changes nothing but the time that it takes.
Result<std::vector<RankedRecord>> ReadPickleDump(std::string_view bytes, PlainEntryPath path = PlainEntryPath::kUsed);

}  // namespace lockstep::ingest
