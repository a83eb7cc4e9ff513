#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::analysis {

/// One tie point between a rank's clock and the run's: at time_ns (rank's clock) the rank's clock read difference_ns
/// more.
struct ClockSample {
  int64_t time_ns = 0;
  int64_t difference_ns = 0;
};

struct ClockFit {
  int64_t offset_ns = 0;       ///< At reference_ns.
  int64_t reference_ns = 0;    ///< Middle of the samples.
  int64_t span_ns = 0;         ///< From the first sample to the last.
  double drift_ppm = 0;        ///< 0 unless the samples show drift beyond doubt.
  int64_t uncertainty_ns = 0;  ///< Half-width: 1 us plus 1.4826 x the median absolute residual.
  uint32_t sample_count = 0;
};

/// Robust fit of offset and drift. The offset is the middle of the densest part of the residuals (the shortest half, of
/// it again the shortest half, its median), which neither outliers nor one-sided lateness of some ends moves. Drift is
/// the median of slopes (Theil and Sen) over blocks of samples; it is kept only if the samples span 2 s or more, the
/// slope is three times its own error, makes 2 us or more over the window, and is below 500 ppm, which no oscillator
/// exceeds. In: at least one sample, in any order. Cost: O(n log n).
ClockFit FitClock(std::vector<ClockSample> samples);

}  // namespace lockstep::analysis
