#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "ingest/flight_recorder/flight_recorder.h"

namespace lockstep::ingest {

/// Reads a dump that is JSON. See ReadFlightRecords, whose errors these are.
Result<std::vector<RankedRecord>> ReadJsonDump(std::string_view bytes);

}  // namespace lockstep::ingest
