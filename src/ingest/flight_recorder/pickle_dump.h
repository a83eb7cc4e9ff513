#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "evidence/flight_record.h"

namespace lockstep::ingest {

enum class PlainEntryPath : uint8_t { kUsed, kUnused };

/// Reads a dump that is a pickle. See ReadFlightRecord, whose errors these are.
/// `path`: for tests; PlainEntries changes nothing but the time that it takes.
Result<evidence::FlightRecord> ReadPickleDump(std::string_view bytes, PlainEntryPath path = PlainEntryPath::kUsed);

}  // namespace lockstep::ingest
