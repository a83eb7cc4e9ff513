#include <fmt/format.h>

#include <algorithm>

#include "present/page/data_blocks.h"
#include "present/report/format.h"

namespace lockstep::page {
namespace {

using model::Lane;
using report::FormatCount;

/// Events of a run by what the limits say of them.
struct EventCounts {
  uint64_t python = 0;
  uint64_t cpu = 0;
  uint64_t device = 0;
  uint64_t taken = 0;        ///< Of the lanes that are taken.
  uint64_t taken_short = 0;  ///< Those of them that are too short.
  size_t crowded_ranks = 0;  ///< Ranks with more than events_per_rank.
};

EventCounts CountEvents(const PageModel& model) {
  EventCounts counts;
  for (const model::RankTrace& trace : model.run().ranks) {
    uint64_t rank_taken = 0;
    for (const model::Track& track : trace.tracks) {
      const uint64_t size = track.events.size();
      (track.lane == Lane::kPython ? counts.python : IsDeviceLane(track.lane) ? counts.device : counts.cpu) += size;
      if (!TakesLane(model.limits, track.lane)) continue;
      rank_taken += size;
      if (model.limits.shortest_event_ns <= 0) continue;
      const auto short_count =
          static_cast<uint64_t>(std::count_if(track.events.duration_ns.begin(), track.events.duration_ns.end(),
                                              [&](int64_t length) { return length < model.limits.shortest_event_ns; }));
      counts.taken_short += short_count;
      rank_taken -= short_count;
    }
    counts.taken += rank_taken;
    counts.crowded_ranks += rank_taken > model.limits.events_per_rank ? 1 : 0;
  }
  counts.taken += counts.taken_short;
  return counts;
}

}  // namespace

bool TakesLane(const PageLimits& limits, Lane lane) {
  if (lane == Lane::kPython) return limits.python_events;
  return IsDeviceLane(lane) ? limits.device_events : limits.cpu_events;
}

bool PlanEvents(const PageModel& model, std::vector<Reduction>* reductions) {
  const PageLimits& limits = model.limits;
  const EventCounts counts = CountEvents(model);
  if (!limits.python_events && !limits.cpu_events && !limits.device_events) {
    const uint64_t all = counts.python + counts.cpu + counts.device;
    if (all > 0) {
      reductions->push_back(
          {"events", fmt::format("single events: all {}; the overview counts every one of them", FormatCount(all))});
    }
    return false;
  }
  if (!limits.python_events && counts.python > 0)
    reductions->push_back({"python_events", fmt::format("Python frames: all {}", FormatCount(counts.python))});
  if (!limits.cpu_events && counts.cpu > 0)
    reductions->push_back({"cpu_events", fmt::format("events of CPU threads: all {}", FormatCount(counts.cpu))});
  if (limits.event_unit_ns > 1) {
    reductions->push_back({"event_precision", fmt::format("single events: times are cut to whole {}",
                                                          report::FormatDuration(limits.event_unit_ns))});
  }
  if (counts.taken_short > 0) {
    reductions->push_back(
        {"short_events", fmt::format("single events shorter than {}: {} of {}; the overview counts every one of them",
                                     report::FormatDuration(limits.shortest_event_ns), FormatCount(counts.taken_short),
                                     FormatCount(counts.taken))});
  }
  if (counts.crowded_ranks > 0) {
    reductions->push_back(
        {"events_per_rank", fmt::format("single events beyond the {} longest of a rank, in {} of {} "
                                        "ranks",
                                        FormatCount(limits.events_per_rank), FormatCount(counts.crowded_ranks),
                                        FormatCount(model.run().ranks.size()))});
  }
  return counts.taken > counts.taken_short;
}

}  // namespace lockstep::page
