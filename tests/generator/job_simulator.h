#pragma once

#include "generator/job_log.h"
#include "generator/trace_spec.h"

namespace lockstep::tracegen {

/// Simulates the whole job on one true clock: host threads, device streams, and collectives that end on every member
/// when the last one has arrived and the data is over. `step_count` overrides the spec's. Deterministic for a seed.
/// Cost: about 50 ns and 64 bytes an event.
JobLog SimulateJob(const TraceSpec& spec, int32_t step_count);

/// True time of the first instant of every job.
inline constexpr int64_t kJobStartNs = 1'711'964'646'000'000'000 + 4'458'676'388'000'000;

}  // namespace lockstep::tracegen
