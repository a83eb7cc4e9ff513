#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

namespace lockstep::model {

/// From one rank's trace clock to RunNs, the job's common clock (the lowest rank's trace clock).
/// offset_ns is what this rank's clock reads more than the reference clock's at reference_ns (rank's own clock).
struct ClockMap {
  enum class Basis : uint8_t {
    kReference,    ///< This is the reference rank.
    kCollectives,  ///< Ends of matched synchronising collectives.
    kWallClock,  ///< The file's wall clock as it is: no correction was possible, or none is larger than its own error.
  };
  Basis basis = Basis::kWallClock;
  int64_t offset_ns = 0;
  int64_t reference_ns = 0;
  double drift_ppm = 0.0;                      ///< Growth of the offset, microseconds per second.
  std::optional<int64_t> uncertainty_ns = {};  ///< Half-width; unknown when nothing could be measured.
  uint32_t sample_count = 0;                   ///< Collectives that were used.

  /// Offset at an instant of the rank's own clock.
  int64_t OffsetAt(int64_t trace_ns) const {
    if (drift_ppm == 0.0) return offset_ns;
    return offset_ns +
           static_cast<int64_t>(std::llround(drift_ppm * 1e-6 * static_cast<double>(trace_ns - reference_ns)));
  }
  int64_t ToRun(int64_t trace_ns) const { return trace_ns - OffsetAt(trace_ns); }
};
const char* ClockBasisName(ClockMap::Basis basis);  ///< "reference", "collectives", "wall_clock".

}  // namespace lockstep::model
