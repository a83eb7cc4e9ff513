#pragma once

#include <cstdint>

#include "generator/job_log.h"
#include "generator/trace_spec.h"

namespace lockstep::tracegen {

/// baseTimeNanoseconds of every file.
inline constexpr int64_t kBaseNs = 1'711'964'646'000'000'000;

/// What a rank's clock reads at an instant of true time.
int64_t RankClock(const TraceSpec& spec, int32_t rank, int64_t job_start_ns, int64_t true_ns);

/// Moves a rank's events from true time onto its own clock, in the resolution of the file, and drops what its window
/// does not hold. Collectives of the job stay in true time.
void PlaceOnClock(const TraceSpec& spec, int32_t rank, const JobLog& job, RankLog* log);

}  // namespace lockstep::tracegen
