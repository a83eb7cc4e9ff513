#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ingest/flight_recorder/dump_tables.h"
#include "ingest/flight_recorder/dump_value.h"

namespace lockstep::ingest {

struct FoundDump {
  std::optional<int32_t> rank;
  Value dump;  ///< kOtherDict, kEntries or kEmptyList.
};

/// `top` itself where it is a dump; else the dumps in it, each once. Their ranks are what they say themselves ("rank"),
/// or their keys ("0", 0, "rank_0"); of a list in which none says it, their places.
std::vector<FoundDump> FindDumps(const Value& top, const DumpTables& tables);

}  // namespace lockstep::ingest
