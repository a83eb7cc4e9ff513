#include "present/query/event_columns.h"

#include "analysis/kernel_kind.h"
#include "analysis/rank_context.h"

namespace lockstep::query {
namespace {

using Type = ColumnType;

void WriteLaunch(const EventPlace& event, bool end, CellOut& out) {
  const analysis::LaunchRef launch = event.source.LaunchOf(event.track, event.row);
  if (!launch.found()) return out.Null();
  const model::RankTrace& trace = event.source.rank(event.track.rank_index);
  const model::EventColumns& calls = trace.tracks[launch.track].events;
  out.Int(trace.clock.ToRun(end ? calls.end_ns(launch.row) : calls.start_ns[launch.row]));
}

}  // namespace

ColumnSpec SpecOf(EventColumn column) {
  switch (column) {
    case EventColumn::kId:
      return {"id", Type::kInteger, "", "Number of the event in the run; `events` and `kernels` share it.", ""};
    case EventColumn::kRank: return {"rank", Type::kInteger, "", "Global rank of the process.", ""};
    case EventColumn::kWindow:
      return {"window", Type::kInteger, "", "0 for the first trace of this rank in time, 1 for the next, and so on.",
              ""};
    case EventColumn::kTrack: return {"track", Type::kInteger, "", "Thread or stream it is on: `tracks.track`.", ""};
    case EventColumn::kLane:
      return {"lane", Type::kText, "",
              "What the track holds: `operators`, `python`, `runtime`, `device`, `device_annotation`, `other`.", ""};
    case EventColumn::kCategory:
      return {"category", Type::kText, "",
              "`cpu_op`, `user_annotation`, `python_function`, `runtime`, `driver`, `kernel`, `memcpy`, `memset`, "
              "`device_annotation`, `sync`, `overhead`, `trace_span`, `other`.",
              ""};
    case EventColumn::kName:
      return {"name", Type::kText, "", "As in the trace, whole; short_name() makes it readable.", ""};
    case EventColumn::kKind: return {"kind", Type::kText, "", "`compute`, `communication`, `memcpy` or `memset`.", ""};
    case EventColumn::kStartNs: return {"start_ns", Type::kInteger, "ns, aligned clock", "Start.", ""};
    case EventColumn::kEndNs: return {"end_ns", Type::kInteger, "ns, aligned clock", "End.", ""};
    case EventColumn::kDurationNs:
      return {"duration_ns", Type::kInteger, "ns", "Duration, by the rank's own clock.", ""};
    case EventColumn::kTraceStartNs:
      return {"trace_start_ns", Type::kInteger, "ns, the rank's own clock", "Start, as the file has it.", ""};
    case EventColumn::kCorrelation:
      return {"correlation", Type::kInteger, "",
              "Joins a runtime call and the device work it launched, within a rank and window.",
              "none, or not on this kind of track"};
    case EventColumn::kDevice: return {"device", Type::kInteger, "", "Device ordinal.", "not on a device"};
    case EventColumn::kStream: return {"stream", Type::kInteger, "", "Stream.", "not on a device"};
    case EventColumn::kProcessId:
      return {"process_id", Type::kInteger, "", "`pid` of the file; the ordinal on devices.", ""};
    case EventColumn::kThreadId:
      return {"thread_id", Type::kInteger, "", "`tid` of the file; the stream on devices.", ""};
    case EventColumn::kDepth:
      return {"depth", Type::kInteger, "count",
              "Events of the same track that began before it and have not ended when it starts.", ""};
    case EventColumn::kStep:
      return {"step", Type::kInteger, "", "Step in whose window it starts (metrics.md#step-windows).", "in no step"};
    case EventColumn::kLaunchStartNs:
      return {"launch_start_ns", Type::kInteger, "ns, aligned clock", "Start of the call that launched it.",
              "the call is not in the file"};
    case EventColumn::kLaunchEndNs:
      return {"launch_end_ns", Type::kInteger, "ns, aligned clock", "End of that call.", "the call is not in the file"};
  }
  return {};
}

void WriteEventCell(const EventPlace& event, EventColumn column, CellOut& out) {
  const Source& source = event.source;
  const model::Track& track = *event.track.track;
  const model::EventColumns& events = track.events;
  const size_t row = event.row;
  const model::RankTrace& trace = source.rank(event.track.rank_index);
  switch (column) {
    case EventColumn::kId: return out.Count(event.track.first_event + row);
    case EventColumn::kRank: return out.Int(trace.rank.value);
    case EventColumn::kWindow: return out.Int(trace.window);
    case EventColumn::kTrack: return out.Int(event.track_id);
    case EventColumn::kLane: return out.Static(model::LaneName(track.lane));
    case EventColumn::kCategory: return out.Static(model::CategoryName(events.category[row]));
    case EventColumn::kName: return out.Static(source.run().names[events.name[row]]);
    case EventColumn::kKind: return out.Static(analysis::KernelKindName(source.KindOf(events, row)));
    case EventColumn::kStartNs: return out.Int(trace.clock.ToRun(events.start_ns[row]));
    case EventColumn::kEndNs: return out.Int(trace.clock.ToRun(events.end_ns(row)));
    case EventColumn::kDurationNs: return out.Int(events.duration_ns[row]);
    case EventColumn::kTraceStartNs: return out.Int(events.start_ns[row]);
    case EventColumn::kCorrelation: {
      const bool known = row < events.correlation.size() && events.correlation[row] != 0;
      return known ? out.Int(events.correlation[row]) : out.Null();
    }
    case EventColumn::kDevice: return IsDeviceLane(track.lane) ? out.Int(track.device().value) : out.Null();
    case EventColumn::kStream: return IsDeviceLane(track.lane) ? out.Int(track.stream().value) : out.Null();
    case EventColumn::kProcessId: return out.Int(track.process_id);
    case EventColumn::kThreadId: return out.Int(track.thread_id);
    case EventColumn::kDepth: return out.Int(source.DepthsOf(event.track_id)[row]);
    case EventColumn::kStep: return out.Optional(source.StepAt(event.track.rank_index, events.start_ns[row]));
    case EventColumn::kLaunchStartNs: return WriteLaunch(event, false, out);
    case EventColumn::kLaunchEndNs: return WriteLaunch(event, true, out);
  }
}

}  // namespace lockstep::query
