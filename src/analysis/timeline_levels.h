#pragma once

#include <cstdint>
#include <vector>

#include "analysis/rank_context.h"

namespace lockstep::analysis {

/// Classes of the overview, in the order of a bucket's values.
enum class TimelineClass : uint8_t { kCompute, kCommunication, kMemory, kHost };
inline constexpr size_t kTimelineClassCount = 4;

/// Time is cut into buckets [i x bucket_ns, (i + 1) x bucket_ns) from an origin on the common clock.
struct TimelineGrid {
  int64_t origin_ns = 0;
  int64_t bucket_ns = 1;    ///< >= 1.
  size_t bucket_count = 0;  ///< What lies outside is left out.
};

/// Busy time of each class in each bucket, as bucket x kTimelineClassCount + class.
using TimelineBusy = std::vector<int64_t>;

/// For one rank, by class, the length of the union of: compute, communication and memory as the breakdown counts them
/// (device events; for a rank without any the CPU's work and collective ranges); host: operators, data loader ranges
/// and calls of the device runtime on any CPU thread. Source: docs/metrics.md#timeline. Cost: O(events + buckets).
TimelineBusy ComputeTimeline(const RunContext& shared, size_t rank_index, const TimelineGrid& grid);

/// The same over buckets `factor` times as long; the last may be incomplete.
TimelineBusy CoarsenTimeline(const TimelineBusy& busy, size_t factor);

}  // namespace lockstep::analysis
