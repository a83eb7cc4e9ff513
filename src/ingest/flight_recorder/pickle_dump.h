#pragma once

#include <string_view>

#include "base/result.h"
#include "evidence/flight_record.h"

namespace lockstep::ingest {

/// Reads a dump that is a pickle. See ReadFlightRecord, whose errors these are.
Result<evidence::FlightRecord> ReadPickleDump(std::string_view bytes);

}  // namespace lockstep::ingest
