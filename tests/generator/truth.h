#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "generator/job_log.h"
#include "generator/json_writer.h"
#include "generator/trace_spec.h"

namespace lockstep::tracegen {

/// What a rank's device did, from the events its file really holds. Durations in nanoseconds of its own clock.
struct DeviceTruth {
  int64_t start_ns = 0;
  int64_t span_ns = 0;
  int64_t busy_ns = 0;
  int64_t compute_ns = 0;
  int64_t communication_ns = 0;
  int64_t overlapped_ns = 0;
  int64_t memory_ns = 0;
  uint64_t kernel_count = 0;
  uint64_t collective_count = 0;
};

/// Gaps between consecutive events of one stream by cause.
struct StreamIdleTruth {
  int64_t host_wait_ns = 0;
  int64_t kernel_wait_ns = 0;
  int64_t other_ns = 0;
};

struct RankTruth {
  std::string file;  ///< Base name; empty when no file was written.
  WrittenCounts written;
  DeviceTruth device;
  std::map<int, StreamIdleTruth> idle;  ///< By stream.
};

/// By a sweep over the ends of all intervals; shares no code with the program under test.
DeviceTruth MeasureDevice(const std::vector<LogEvent>& events, size_t count);
std::map<int, StreamIdleTruth> MeasureIdle(const std::vector<LogEvent>& events, size_t count);

/// The truth file's JSON.
std::string TruthJson(const TraceSpec& spec, const JobLog& job, int32_t step_count,
                      const std::vector<RankTruth>& ranks);

}  // namespace lockstep::tracegen
