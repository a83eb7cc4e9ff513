#include "analysis/timeline_levels.h"

#include <algorithm>
#include <array>
#include <limits>

#include "analysis/cpu_activity.h"
#include "analysis/device_tracks.h"
#include "analysis/host_role.h"
#include "analysis/track_merge.h"

namespace lockstep::analysis {
namespace {

/// Adds intervals that come sorted by start to buckets, each nanosecond of a class once.
class BucketSweep {
 public:
  BucketSweep(const model::ClockMap& clock, const TimelineGrid& grid, TimelineBusy* busy)
      : clock_(clock), grid_(grid), end_ns_(grid.bucket_ns * static_cast<int64_t>(grid.bucket_count)), busy_(busy) {
    covered_ns_.fill(0);
  }

  void Add(int64_t start_ns, int64_t end_ns, TimelineClass kind) {
    int64_t& covered_ns = covered_ns_[static_cast<size_t>(kind)];
    const int64_t from_ns = std::max(clock_.ToRun(start_ns) - grid_.origin_ns, covered_ns);
    const int64_t to_ns = std::min(clock_.ToRun(end_ns) - grid_.origin_ns, end_ns_);
    if (from_ns >= to_ns) return;
    covered_ns = to_ns;
    auto bucket = static_cast<size_t>(from_ns / grid_.bucket_ns);
    for (int64_t now_ns = from_ns; now_ns < to_ns; ++bucket) {
      const int64_t until_ns = std::min(to_ns, static_cast<int64_t>(bucket + 1) * grid_.bucket_ns);
      (*busy_)[bucket * kTimelineClassCount + static_cast<size_t>(kind)] += until_ns - now_ns;
      now_ns = until_ns;
    }
  }

 private:
  const model::ClockMap& clock_;
  const TimelineGrid& grid_;
  const int64_t end_ns_;
  std::array<int64_t, kTimelineClassCount> covered_ns_;
  TimelineBusy* busy_;
};

TimelineClass ClassOf(Activity activity) {
  switch (activity) {
    case Activity::kCompute: return TimelineClass::kCompute;
    case Activity::kCommunication: return TimelineClass::kCommunication;
    case Activity::kMemory: return TimelineClass::kMemory;
  }
  return TimelineClass::kCompute;
}

/// Cursor of MergeByStart over what keeps one CPU thread busy.
class HostBusyCursor {
 public:
  HostBusyCursor(const model::Track& track, HostRoles* roles) : track_(&track), roles_(roles) { SkipIdle(); }
  bool done() const { return row_ >= track_->events.size(); }
  int64_t start() const { return track_->events.start_ns[row_]; }
  int64_t end() const { return track_->events.end_ns(row_); }
  void Next() {
    ++row_;
    SkipIdle();
  }

 private:
  bool IsBusy() const {
    if (track_->lane == model::Lane::kRuntime) return true;
    const HostRole role = (*roles_)[track_->events.name[row_]];
    if (role == HostRole::kDataLoader) return true;
    if (role == HostRole::kStep || role == HostRole::kCollective) return false;
    return track_->events.category[row_] == model::Category::kCpuOp;
  }
  void SkipIdle() {
    while (!done() && !IsBusy()) ++row_;
  }

  const model::Track* track_;
  HostRoles* roles_;
  size_t row_ = 0;
};

}  // namespace

TimelineBusy ComputeTimeline(const RunContext& shared, size_t rank_index, const TimelineGrid& grid) {
  const model::RankTrace& trace = shared.run->ranks[rank_index];
  TimelineBusy busy(grid.bucket_count * kTimelineClassCount, 0);
  RankContext context;
  context.shared = &shared;
  context.rank_index = rank_index;

  BucketSweep sweep(trace.clock, grid, &busy);
  const auto add = [&sweep](const auto& cursor) {
    sweep.Add(cursor.start(), cursor.end(), ClassOf(cursor.activity()));
  };
  if (trace.HasDeviceEvents()) {
    std::vector<DeviceCursor> cursors;
    for (const DeviceTracks& device : FindDeviceTracks(trace)) {
      for (DeviceCursor& cursor : MakeCursors(context, device)) cursors.push_back(cursor);
    }
    MergeByStart(cursors, add);
  } else {
    const CpuActivity activity = FindCpuActivity(context);
    std::vector<CpuCursor> cursors = MakeCursors(activity);
    MergeByStart(cursors, add);
  }

  HostRoles roles(shared.run->names);
  std::vector<HostBusyCursor> threads;
  for (const model::Track& track : trace.tracks) {
    if (track.lane == model::Lane::kOperators || track.lane == model::Lane::kRuntime)
      threads.emplace_back(track, &roles);
  }
  MergeByStart(threads, [&sweep](const HostBusyCursor& cursor) {
    sweep.Add(cursor.start(), cursor.end(), TimelineClass::kHost);
  });
  return busy;
}

TimelineBusy CoarsenTimeline(const TimelineBusy& busy, size_t factor) {
  const size_t bucket_count = busy.size() / kTimelineClassCount;
  TimelineBusy coarse((bucket_count + factor - 1) / factor * kTimelineClassCount, 0);
  for (size_t i = 0; i < busy.size(); ++i) {
    const size_t bucket = i / kTimelineClassCount / factor;
    coarse[bucket * kTimelineClassCount + i % kTimelineClassCount] += busy[i];
  }
  return coarse;
}

}  // namespace lockstep::analysis
