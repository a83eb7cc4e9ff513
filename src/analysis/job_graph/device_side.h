#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/job_graph/rank_graph.h"

namespace lockstep::analysis {

/// A host thread of a trace: (process_id, thread_id) of its tracks.
using HostThread = std::pair<int64_t, int64_t>;

/// Something that happens on a host thread and needs a node there.
struct HostAnchor {
  enum class Kind : uint8_t {
    kDeparture,  ///< `node` happens when the thread is at `time_ns`.
    kWait,       ///< The thread waits in [time_ns, end_ns) for `sources`; it goes on at `wait_end_ns`.
    kArrival,    ///< Another thread handed over: the thread starts at `node`.
  };
  HostThread thread;
  int64_t time_ns = 0;
  int64_t end_ns = 0;
  int64_t wait_end_ns = 0;
  Kind kind = Kind::kDeparture;
  uint32_t step = 0;  ///< Index into the rank's step graphs.
  uint32_t node = 0;
  /// kWait: a node and how much later than the end of the wait it happened (clock errors; otherwise 0).
  struct Source {
    uint32_t node = 0;
    int64_t late_ns = 0;
  };
  std::vector<Source> sources = {};
};

/// Adds the device's events to the step graphs, and to `anchors` what the host has to give (launches) and to wait for.
void AddDeviceSide(const RankContext& context, std::vector<RankStepGraph>* steps, std::vector<HostAnchor>* anchors);

/// Index of the step whose window holds `time_ns`, or steps.size(). Windows are disjoint and in order.
size_t StepAt(const std::vector<RankStepGraph>& steps, int64_t time_ns);

}  // namespace lockstep::analysis
