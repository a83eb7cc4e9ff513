#pragma once

#include <string>

#include "ingest/torch_trace/trace_reader.h"

namespace lockstep::ingest {

/// Gives kernels that have the correlation 0 (ROCm's profiler loses it) that of their launch, by order: the n-th such
/// kernel of a communication library is of the n-th launch within a collective call that no kernel claims, and the same
/// with all others. Only where there are as many of the one as of the other and none would begin before its launch. The
/// ledger tells how many were given one ("guessed_correlations") or were left without ("lost_correlations"). Cost:
/// O(device and runtime events) where some are without, else O(device events).
void GuessLostCorrelations(const std::string& source, TraceContent* content);

}  // namespace lockstep::ingest
