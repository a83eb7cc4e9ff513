#pragma once

#include <cstdint>
#include <string>

#include "generator/byte_sink.h"
#include "generator/job_log.h"
#include "generator/trace_spec.h"

namespace lockstep::tracegen {

/// What was written of a rank.
struct WrittenCounts {
  uint64_t json_bytes = 0;
  uint64_t event_count = 0;     ///< Whole elements of traceEvents.
  uint64_t complete_count = 0;  ///< Of them "X".
  size_t cpu_rows = 0;          ///< Leading rows of RankLog::cpu whose event is whole in the file.
  size_t device_rows = 0;       ///< Leading rows of RankLog::device.
};

std::string HostName(const TraceSpec& spec, int32_t rank);
int64_t ProcessId(int32_t rank);

/// Writes one rank's trace. Bytes past `limit` are left out. `rank_log` holds the file's own times (PlaceOnClock).
/// Cost: over 1 GB/s on one thread to a plain file in memory.
WrittenCounts WriteRank(const TraceSpec& spec, const JobLog& job, const RankLog& rank_log, int32_t rank, uint64_t limit,
                        ByteSink* sink);

}  // namespace lockstep::tracegen
