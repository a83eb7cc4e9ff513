#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/rank_context.h"
#include "base/ids.h"

namespace lockstep::analysis {

/// What an edge of a range's graph is, in Holistic Trace Analysis' words.
enum class RangeEdgeType : uint8_t {
  kOperator,           ///< Between instants of one thread's call stack, and a device event's start to its end.
  kLaunchDelay,        ///< Start of a launch call to the start of its device event; weight 0 where it does not decide.
  kDependency,         ///< Between top-level ranges of a thread; weight 0.
  kKernelKernelDelay,  ///< End of a device event to the start of the next of its stream.
  kSync,               ///< Device event to the call, or the device event, that waits for it; weight 0.
};
inline constexpr size_t kRangeEdgeTypeCount = 5;
const char* RangeEdgeTypeName(RangeEdgeType type);  ///< "operator", "launch_delay", ...

/// Whose time an edge is.
enum class RangeBound : uint8_t { kNone, kCpu, kDataLoading, kCompute, kCommunication, kKernelKernel, kLaunch };
inline constexpr size_t kRangeBoundCount = 7;
const char* RangeBoundName(RangeBound bound);  ///< "none", "cpu", "data_loading", "compute", ...

/// An instant: start or end of an event.
struct RangeInstant {
  NameId event;
  int64_t event_start_ns = 0;  ///< Trace clock.
  int64_t event_duration_ns = 0;
  bool is_start = true;
  bool on_device = false;
};

struct RangeEdge {
  RangeEdgeType type = RangeEdgeType::kOperator;
  RangeBound bound = RangeBound::kNone;
  bool critical = false;
  int64_t weight_ns = 0;
  RangeInstant from;
  RangeInstant to;
  std::optional<NameId> of;  ///< Event whose time it is: kOperator and kKernelKernelDelay.
};

/// Critical path of one rank inside one range, by Holistic Trace Analysis' definition.
struct RangePath {
  size_t rank_index = 0;
  int64_t start_ns = 0;  ///< The range, trace clock.
  int64_t end_ns = 0;
  int64_t length_ns = 0;                                ///< Sum of the weights on the path.
  std::array<int64_t, kRangeBoundCount> bound_ns = {};  ///< The same by whose time it is; kNone is 0.
  std::array<uint64_t, kRangeEdgeTypeCount> edge_counts = {};
  uint64_t node_count = 0;           ///< Instants that have an edge.
  uint64_t critical_node_count = 0;  ///< Edges on the path + 1; 0 without a path.
  uint64_t critical_event_count = 0;
  std::vector<RangeEdge> edges;  ///< The path's in order of time, then the others in the order of building.
};

/// `range`: the instance-th (from 0, by start) CPU event whose name contains this text; empty: the whole trace. Absent
/// where the rank has no such event. Source: docs/metrics.md#range-path. Cost: O(n log n) of the rank's events.
std::optional<RangePath> FindRangePath(const RankContext& context, const std::string& range, int64_t instance);

}  // namespace lockstep::analysis
