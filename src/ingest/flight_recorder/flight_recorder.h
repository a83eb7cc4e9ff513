#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/evidence/flight_record.h"

namespace lockstep::ingest {

/// What a file's first bytes say.
enum class FlightFormat : uint8_t { kNone, kPickle, kJson };
/// Never wrong about a real dump; a JSON object without a dump's keys within the first 4 KiB is kNone. A pickle of
/// something else may be kPickle, and one of an older protocol than dumps have is kNone: where a file's name says that
/// it is a dump, let ReadFlightRecord say what is wrong with it.
FlightFormat SniffFlightRecord(std::string_view first_bytes);

struct RankedRecord {
  std::optional<int32_t> rank;  ///< As the file's content says.
  evidence::FlightRecord record;
};

/// Reads a dump of any version, pickle or JSON, already decompressed, or a file that holds the dumps of several ranks:
/// a dict of dumps by rank, a list of dumps, or one of these inside a dict with other contents. Pickle is read as data:
/// an opcode that could call code is refused, with its name and position. A dump that ends early gives its complete
/// part, with `truncated` set. Errors: kCorruptData, kUnsupported (an opcode that no writer of dumps uses),
/// kLimitExceeded (depth, memo, nodes). Cost: O(bytes); resident memory at most a constant times the bytes. Source:
/// docs/formats/flight-recorder.md.
Result<std::vector<RankedRecord>> ReadFlightRecords(std::string_view bytes);
/// The same of a file that has one dump. Errors: also kInvalidArgument where it has several.
Result<evidence::FlightRecord> ReadFlightRecord(std::string_view bytes);

/// The rank that a dump's file name ends in: "nccl_trace_rank_12", "trace_3.json.gz", "_dump_7", "rank_12.pickle".
std::optional<int32_t> RankOfDumpName(std::string_view file_name);

}  // namespace lockstep::ingest
