#include "analysis/operators.h"

#include <algorithm>
#include <limits>

#include "analysis/host_role.h"
#include "analysis/name_rows.h"
#include "analysis/pass.h"
#include "analysis/table.h"

namespace lockstep::analysis {
namespace {

using model::EventColumns;
using model::Lane;
using model::Track;

/// Device time by the call that launched it: per runtime track, parallel to its events; empty where it launched
/// nothing.
std::vector<std::vector<int64_t>> DeviceTimeByCall(const RankContext& context) {
  const model::RankTrace& trace = context.trace();
  std::vector<std::vector<int64_t>> device_ns(trace.tracks.size());
  for (size_t t = 0; t < trace.tracks.size(); ++t) {
    if (trace.tracks[t].lane != Lane::kDevice) continue;
    const EventColumns& events = trace.tracks[t].events;
    for (size_t row = 0; row < events.size(); ++row) {
      const LaunchRef launch = context.launches[t][row];
      if (!launch.found() || !context.InScope(t, row)) continue;
      std::vector<int64_t>& by_call = device_ns[launch.track];
      if (by_call.empty()) by_call.resize(trace.tracks[launch.track].events.size());
      by_call[launch.row] = AddSaturating(by_call[launch.row], events.duration_ns[row]);
    }
  }
  return device_ns;
}

/// The runtime track of the same thread; tracks.size() if it has none.
size_t RuntimeTrackOf(const model::RankTrace& trace, const Track& track) {
  const auto found =
      std::lower_bound(trace.tracks.begin(), trace.tracks.end(), track, [](const Track& a, const Track& b) {
        if (a.lane != Lane::kRuntime) return a.lane < Lane::kRuntime;
        if (a.process_id != b.process_id) return a.process_id < b.process_id;
        return a.thread_id < b.thread_id;
      });
  if (found == trace.tracks.end() || found->lane != Lane::kRuntime || found->process_id != track.process_id ||
      found->thread_id != track.thread_id) {
    return trace.tracks.size();
  }
  return static_cast<size_t>(found - trace.tracks.begin());
}

/// A range of the thread that is open while the sweep is inside it.
struct OpenOperator {
  int64_t end_ns = 0;
  int64_t children_ns = 0;  ///< Time in direct children, cut at this range's end.
  int64_t device_self_ns = 0;
  int64_t device_nested_ns = 0;  ///< Device time of everything nested in it.
  int64_t duration_ns = 0;
  uint32_t row = 0;
};

/// Sweeps one thread's ranges with a stack of the open ones.
class ThreadSweep {
 public:
  explicit ThreadSweep(RowsByKey<OperatorRow>* rows) : rows_(rows) {}

  void Open(NameId name, int64_t start_ns, int64_t duration_ns) {
    CloseUntil(start_ns);
    const int64_t end_ns = start_ns + duration_ns;
    if (!open_.empty()) {
      OpenOperator& parent = open_.back();
      parent.children_ns += std::min(end_ns, parent.end_ns) - start_ns;
    }
    OpenOperator range;
    range.end_ns = end_ns;
    range.duration_ns = duration_ns;
    range.row = Row(name);
    open_.push_back(range);
  }
  /// A range that goes on beside the thread: it has no parent and no children.
  void AddDetached(NameId name, int64_t duration_ns) {
    OpenOperator range;
    range.duration_ns = duration_ns;
    range.row = Row(name);
    Count(range);
  }
  /// A call of the runtime or driver: a child like a nested range, without a row of its own. Calls inside calls (a
  /// driver call made by a runtime call) add nothing.
  void AddCall(int64_t start_ns, int64_t end_ns, int64_t device_ns) {
    CloseUntil(start_ns);
    if (open_.empty()) return;
    OpenOperator& parent = open_.back();
    const int64_t from_ns = std::max(start_ns, calls_until_ns_);
    const int64_t until_ns = std::min(end_ns, parent.end_ns);
    if (from_ns < until_ns) parent.children_ns += until_ns - from_ns;
    calls_until_ns_ = std::max(calls_until_ns_, end_ns);
    parent.device_self_ns = AddSaturating(parent.device_self_ns, device_ns);
  }
  void Finish() {
    while (!open_.empty()) CloseTop();
  }

 private:
  uint32_t Row(NameId name) {
    const uint32_t row = rows_->Index(name.value);
    rows_->rows()[row].name = name;
    return row;
  }
  void CloseUntil(int64_t time_ns) {
    while (!open_.empty() && open_.back().end_ns <= time_ns) CloseTop();
  }
  void CloseTop() {
    const OpenOperator range = open_.back();
    open_.pop_back();
    const int64_t device_total_ns = Count(range);
    if (!open_.empty()) open_.back().device_nested_ns = AddSaturating(open_.back().device_nested_ns, device_total_ns);
  }
  int64_t Count(const OpenOperator& range) {
    const int64_t device_total_ns = AddSaturating(range.device_self_ns, range.device_nested_ns);
    OperatorRow& row = rows_->rows()[range.row];
    ++row.count;
    row.cpu_self_ns = AddSaturating(row.cpu_self_ns, std::max<int64_t>(0, range.duration_ns - range.children_ns));
    row.cpu_total_ns = AddSaturating(row.cpu_total_ns, range.duration_ns);
    row.device_self_ns = AddSaturating(row.device_self_ns, range.device_self_ns);
    row.device_total_ns = AddSaturating(row.device_total_ns, device_total_ns);
    return device_total_ns;
  }

  RowsByKey<OperatorRow>* rows_;
  std::vector<OpenOperator> open_;
  int64_t calls_until_ns_ = std::numeric_limits<int64_t>::min();
};

void SweepThread(const RankContext& context, const Track& track, const EventColumns* calls,
                 const std::vector<int64_t>& device_ns, HostRoles* roles, RowsByKey<OperatorRow>* rows) {
  ThreadSweep sweep(rows);
  const EventColumns& events = track.events;
  size_t call = 0;
  const auto add_calls = [&](int64_t before_ns) {
    if (calls == nullptr) return;
    for (; call < calls->size() && calls->start_ns[call] < before_ns; ++call) {
      sweep.AddCall(calls->start_ns[call], calls->end_ns(call), device_ns.empty() ? 0 : device_ns[call]);
    }
  };
  for (size_t row = 0; row < events.size(); ++row) {
    const int64_t start_ns = events.start_ns[row];
    if (context.cpu_cutoff_ns && start_ns >= *context.cpu_cutoff_ns) break;
    add_calls(start_ns);
    const NameId name = events.name[row];
    if ((*roles)[name] == HostRole::kCollective) {
      sweep.AddDetached(name, events.duration_ns[row]);
    } else {
      sweep.Open(name, start_ns, events.duration_ns[row]);
    }
  }
  add_calls(std::numeric_limits<int64_t>::max());
  sweep.Finish();
}

}  // namespace

void ComputeOperators(const RankContext& context, std::vector<OperatorRow>* rows) {
  const model::RankTrace& trace = context.trace();
  const std::vector<std::vector<int64_t>> device_ns = DeviceTimeByCall(context);
  static const std::vector<int64_t> kNoDeviceTime;
  RowsByKey<OperatorRow> by_name(context.names().size());
  HostRoles roles(context.names());
  for (const Track& track : trace.tracks) {
    if (track.lane != Lane::kOperators) continue;
    const size_t runtime = RuntimeTrackOf(trace, track);
    const bool has_runtime = runtime < trace.tracks.size();
    SweepThread(context, track, has_runtime ? &trace.tracks[runtime].events : nullptr,
                has_runtime ? device_ns[runtime] : kNoDeviceTime, &roles, &by_name);
  }

  const size_t first = rows->size();
  for (OperatorRow& row : by_name.rows()) {
    row.rank_index = context.rank_index;
    rows->push_back(row);
  }
  const model::NameTable& names = context.names();
  std::sort(rows->begin() + static_cast<std::ptrdiff_t>(first), rows->end(),
            [&names](const OperatorRow& a, const OperatorRow& b) {
              if (a.device_self_ns != b.device_self_ns) return a.device_self_ns > b.device_self_ns;
              if (a.cpu_self_ns != b.cpu_self_ns) return a.cpu_self_ns > b.cpu_self_ns;
              return names[a.name] < names[b.name];
            });
}

namespace {

std::vector<RowColumn<OperatorRow>> OperatorColumns() {
  using Row = OperatorRow;
  return {
      Field<&Row::name>("name", "", "As in the trace, whole."),
      Field<&Row::count>("count", "count", "Calls."),
      Field<&Row::cpu_self_ns>("cpu_self_ns", "ns", "Time in the range less its direct children's on the same thread."),
      Field<&Row::cpu_total_ns>("cpu_total_ns", "ns", "Time in the range."),
      Field<&Row::device_self_ns>("device_self_ns", "ns",
                                  "Durations of the device events launched from this range itself."),
      Field<&Row::device_total_ns>("device_total_ns", "ns", "And from everything nested in it."),
  };
}

}  // namespace

Pass OperatorsPass() {
  return RankPass<Operators>({.question = "Which operators take the time, on the CPU and on the device?",
                              .tables = {DeclareRankTable("operators", "operators",
                                                          "Operators and annotations of one name on one rank, added up",
                                                          &Operators::rows, OperatorColumns())}},
                             [](const RankContext& context) {
                               Operators rank;
                               ComputeOperators(context, &rank.rows);
                               return rank;
                             });
}

}  // namespace lockstep::analysis
