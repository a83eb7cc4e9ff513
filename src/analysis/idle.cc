#include "analysis/idle.h"

#include <algorithm>

#include "analysis/activity.h"
#include "analysis/cpu_activity.h"
#include "analysis/device_tracks.h"
#include "analysis/host_idle.h"
#include "analysis/pass.h"
#include "analysis/table.h"

namespace lockstep::analysis {
namespace {

IdleRow ClassifyStream(const RankContext& context, size_t t) {
  const model::RankTrace& trace = context.trace();
  const model::EventColumns& events = trace.tracks[t].events;
  IdleRow row;
  row.rank_index = context.rank_index;
  row.device = trace.tracks[t].device();
  row.stream = trace.tracks[t].stream();
  bool first = true;
  int64_t previous_end_ns = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    if (!context.InScope(t, i)) continue;
    const int64_t gap_ns = first ? 0 : events.start_ns[i] - previous_end_ns;
    if (gap_ns != 0) {
      const LaunchRef launch = context.launches[t][i];
      const bool launched_late =
          launch.found() && trace.tracks[launch.track].events.start_ns[launch.row] > previous_end_ns;
      if (launched_late) {
        row.host_wait_ns += gap_ns;
      } else if (gap_ns < context.options().kernel_wait_threshold_ns) {
        row.kernel_wait_ns += gap_ns;  // Negative where events overlap, by rounding or in a graph.
      } else {
        row.other_ns += gap_ns;
      }
    }
    previous_end_ns = events.end_ns(i);
    first = false;
  }
  row.host_wait_ns = std::max<int64_t>(row.host_wait_ns, 0);
  row.kernel_wait_ns = std::max<int64_t>(row.kernel_wait_ns, 0);
  return row;
}

template <typename Cursor>
std::vector<Interval> FindGaps(std::vector<Cursor> cursors) {
  std::vector<Interval> gaps;
  ActivitySweep sweep(&gaps);
  MergeByStart(cursors, [&sweep](const Cursor& cursor) { sweep.Add(cursor.start(), cursor.end(), cursor.activity()); });
  return gaps;
}

/// Gaps of a CPU-only rank: as FindGaps, and before the first and after the last work, within the span.
std::vector<Interval> FindCpuGaps(const CpuActivity& activity) {
  std::vector<Interval> gaps;
  ActivitySweep sweep(&gaps);
  sweep.Add(activity.first_ns, activity.first_ns, Activity::kCompute);
  std::vector<CpuCursor> cursors = MakeCursors(activity);
  MergeByStart(cursors,
               [&sweep](const CpuCursor& cursor) { sweep.Add(cursor.start(), cursor.end(), cursor.activity()); });
  sweep.Add(activity.last_ns, activity.last_ns, Activity::kCompute);
  return gaps;
}

void AddShares(const HostShares& shares, IdleHostRow* host) {
  host->runtime_ns += shares.runtime_ns;
  host->data_loader_ns += shares.data_loader_ns;
  host->operator_ns += shares.operator_ns;
  host->unknown_ns += shares.unknown_ns;
}

}  // namespace

void ComputeIdle(const RankContext& context, std::vector<IdleRow>* rows, IdleHostRow* host) {
  *host = IdleHostRow();
  host->rank_index = context.rank_index;
  const std::vector<DeviceTracks> devices = FindDeviceTracks(context.trace());
  for (const DeviceTracks& device : devices) {
    for (const size_t track : device.tracks) rows->push_back(ClassifyStream(context, track));
    AddShares(AttributeToHost(context, FindGaps(MakeCursors(context, device))), host);
  }
  if (devices.empty()) {
    const CpuActivity activity = FindCpuActivity(context);
    if (activity.any) AddShares(AttributeToHost(context, FindCpuGaps(activity)), host);
  }
}

namespace {

std::vector<RowColumn<IdleRow>> IdleColumns() {
  using Row = IdleRow;
  return {
      Field<&Row::device>("device", "", "Device ordinal."),
      Field<&Row::stream>("stream", "", "Stream."),
      Field<&Row::host_wait_ns>("host_wait_ns", "ns",
                                "The next event's launch call began after the previous event had ended."),
      Field<&Row::kernel_wait_ns>("kernel_wait_ns", "ns", "Launched in time, gap below the threshold (30 us)."),
      Field<&Row::other_ns>("other_ns", "ns", "The rest."),
  };
}

std::vector<RowColumn<IdleHostRow>> IdleHostColumns() {
  using Row = IdleHostRow;
  return {
      Field<&Row::runtime_ns>("runtime_ns", "ns", "In a call of the device runtime or driver."),
      Field<&Row::data_loader_ns>("data_loader_ns", "ns", "In a data loader."),
      Field<&Row::operator_ns>("operator_ns", "ns", "In an operator."),
      Field<&Row::unknown_ns>("unknown_ns", "ns", "Nothing was recorded."),
  };
}

}  // namespace

Pass IdlePass() {
  return ReducingPass<Idle, Idle>(
      {.question = "Why was the device idle: host too late, gap between kernels, other?",
       .tables =
           {DeclareRankTable("idle", "idle", "Idle time between a stream's consecutive events, by cause", &Idle::rows,
                             IdleColumns()),
            DeclareRankTable(
                "idle_host", "idle_host",
                "What the host was doing while the whole device was idle; the parts sum to the breakdown's `idle_ns`",
                &Idle::host, IdleHostColumns())}},
      [](const RankContext& context) {
        Idle rank;
        ComputeIdle(context, &rank.rows, &rank.host.emplace_back());
        return rank;
      },
      [](PassContext&, std::vector<Idle> ranks) {
        Idle all;
        for (size_t i = 0; i < ranks.size(); ++i) {
          MoveRows(&ranks[i].rows, &all.rows);
          IdleHostRow& row = all.host.emplace_back();
          if (!ranks[i].host.empty()) row = ranks[i].host.front();
          row.rank_index = i;
        }
        return all;
      });
}

}  // namespace lockstep::analysis
