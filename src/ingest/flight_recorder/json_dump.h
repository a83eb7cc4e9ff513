#pragma once

#include <string_view>

#include "base/result.h"
#include "evidence/flight_record.h"

namespace lockstep::ingest {

/// Reads a dump that is JSON. See ReadFlightRecord, whose errors these are.
Result<evidence::FlightRecord> ReadJsonDump(std::string_view bytes);

}  // namespace lockstep::ingest
