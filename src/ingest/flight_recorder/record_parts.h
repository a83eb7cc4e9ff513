#pragma once

#include <vector>

#include "base/result.h"
#include "ingest/flight_recorder/dump_tables.h"
#include "ingest/flight_recorder/entry_fields.h"
#include "ingest/flight_recorder/flight_recorder.h"
#include "model/evidence/flight_record.h"

namespace lockstep::ingest {

/// Puts records together out of the filled top of a file, the entries that were met on the way and what they refer to:
/// one where the top is a dump, else one for each dump that it holds; see ReadFlightRecords. Where the file was cut the
/// last of them was.
/// Errors: kCorruptData when nothing is a dump; kLimitExceeded when shared content would outgrow the file.
Result<std::vector<RankedRecord>> MakeRecords(const Value& top, bool truncated,
                                              const std::vector<EntryFields::GroupKey>& group_keys,
                                              std::vector<evidence::FlightEntry> entries, DumpTables& tables);

}  // namespace lockstep::ingest
