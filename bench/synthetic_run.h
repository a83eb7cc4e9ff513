#pragma once

#include <cstddef>
#include <cstdint>

#include "model/run.h"

namespace lockstep::bench {

/// A job in memory, as ingest would leave it, for sizes whose traces would be gigabytes. Every rank's step has one
/// annotation on its CPU thread, `kernels_per_step` kernels and one all_reduce with its metadata on two streams.
/// Durations vary by some percent; one rank in a hundred is slow. The same shape gives the same run.
struct SyntheticShape {
  size_t rank_count = 1000;
  size_t step_count = 2000;
  size_t kernels_per_step = 3;
};
model::Run MakeSyntheticRun(const SyntheticShape& shape);

}  // namespace lockstep::bench
