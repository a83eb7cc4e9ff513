#pragma once

#include <vector>

#include "base/result.h"
#include "evidence/flight_record.h"
#include "ingest/flight_recorder/dump_tables.h"
#include "ingest/flight_recorder/entry_fields.h"

namespace lockstep::ingest {

/// Puts a record together out of the filled top of a dump, the entries that were met on the way and what they refer to.
/// Errors: kCorruptData when `top` is no dump; kLimitExceeded when shared content would outgrow the dump.
Result<evidence::FlightRecord> MakeRecord(const Value& top, bool truncated,
                                          const std::vector<EntryFields::GroupKey>& group_keys,
                                          std::vector<evidence::FlightEntry> entries, DumpTables& tables);

}  // namespace lockstep::ingest
