#include "analysis/breakdown.h"

#include <algorithm>
#include <limits>

#include "analysis/activity.h"
#include "analysis/cpu_activity.h"
#include "analysis/device_tracks.h"
#include "analysis/pass.h"
#include "analysis/step_windows.h"
#include "analysis/table.h"

namespace lockstep::analysis {
namespace {

/// Sums of one device (or of the CPU): in each window, and over everything.
struct WindowedSums {
  std::vector<ActivitySums> windows;
  ActivitySums whole;
  int64_t first_ns = std::numeric_limits<int64_t>::max();
  int64_t last_ns = std::numeric_limits<int64_t>::min();
};

/// One sweep over the merged events, cut at the borders of the windows.
template <typename Cursor>
WindowedSums SumOverWindows(std::vector<Cursor> cursors, const std::vector<model::Step>& windows) {
  WindowedSums sums;
  sums.windows.resize(windows.size());
  ActivitySweep sweep;
  // Borders in order: start and end of window 0, start and end of window 1, ...; windows are disjoint.
  size_t border = 0;
  const auto border_ns = [&](size_t i) { return i % 2 == 0 ? windows[i / 2].start_ns : windows[i / 2].end_ns; };
  const auto pass_borders = [&](int64_t until_ns) {
    while (border < 2 * windows.size() && border_ns(border) <= until_ns) {
      sweep.Advance(border_ns(border));
      const ActivitySums part = sweep.Take();
      sums.whole += part;
      if (border % 2 == 1) sums.windows[border / 2] += part;
      ++border;
    }
  };
  MergeByStart(cursors, [&](const Cursor& cursor) {
    const int64_t start_ns = cursor.start();
    const int64_t end_ns = cursor.end();
    pass_borders(start_ns);
    sweep.Add(start_ns, end_ns, cursor.activity());
    sums.first_ns = std::min(sums.first_ns, start_ns);
    sums.last_ns = std::max(sums.last_ns, end_ns);
  });
  pass_borders(sums.last_ns);
  sweep.Finish();
  const ActivitySums rest = sweep.Take();
  sums.whole += rest;
  // A window that is still open holds the rest; one that was never reached holds nothing.
  if (border < 2 * windows.size() && border % 2 == 1) sums.windows[border / 2] += rest;
  return sums;
}

void AddSums(const ActivitySums& sums, int64_t span_ns, BreakdownRow* row) {
  row->span_ns += span_ns;
  row->busy_ns += sums.busy_ns;
  row->compute_ns += sums.compute_ns;
  row->communication_ns += sums.communication_ns;
  row->overlapped_communication_ns += sums.overlapped_ns;
  row->exposed_communication_ns += sums.communication_ns - sums.overlapped_ns;
  row->memory_ns += sums.memory_ns;
  row->exposed_memory_ns += sums.exposed_memory_ns;
  row->idle_ns += span_ns - sums.busy_ns;
}

/// The rows of one rank while devices are added to it.
class RowBuilder {
 public:
  RowBuilder(const RankContext& context, Basis basis, BreakdownRow* whole, std::vector<BreakdownRow>* steps)
      : windows_(StepWindows(context)), whole_(whole), steps_(steps), first_step_(steps->size()) {
    *whole = BreakdownRow();
    whole->rank_index = context.rank_index;
    whole->basis = basis;
    for (const model::Step& window : windows_) {
      BreakdownRow row;
      row.rank_index = context.rank_index;
      row.basis = basis;
      row.step_number = window.number;
      row.start_ns = window.start_ns;
      steps->push_back(row);
    }
  }

  template <typename Cursor>
  void AddDevice(std::vector<Cursor> cursors) {
    const WindowedSums sums = SumOverWindows(std::move(cursors), windows_);
    if (sums.first_ns <= sums.last_ns) AddWhole(sums.whole, sums.first_ns, sums.last_ns);
    AddSteps(sums.windows);
  }
  void AddWhole(const ActivitySums& sums, int64_t first_ns, int64_t last_ns) {
    whole_->start_ns = any_ ? std::min(whole_->start_ns, first_ns) : first_ns;
    any_ = true;
    AddSums(sums, last_ns - first_ns, whole_);
  }
  void AddSteps(const std::vector<ActivitySums>& sums) {
    for (size_t i = 0; i < windows_.size(); ++i) {
      AddSums(sums[i], windows_[i].end_ns - windows_[i].start_ns, &(*steps_)[first_step_ + i]);
    }
  }
  const std::vector<model::Step>& windows() const { return windows_; }

 private:
  std::vector<model::Step> windows_;
  BreakdownRow* whole_;
  std::vector<BreakdownRow>* steps_;
  size_t first_step_;
  bool any_ = false;
};

}  // namespace

const char* BasisName(Basis basis) {
  switch (basis) {
    case Basis::kDevice: return "device";
    case Basis::kCpu: return "cpu";
    case Basis::kNone: return "none";
  }
  return "none";
}

std::optional<double> BreakdownRow::communication_overlap_ratio() const {
  if (communication_ns <= 0) return std::nullopt;
  return static_cast<double>(overlapped_communication_ns) / static_cast<double>(communication_ns);
}

void ComputeBreakdown(const RankContext& context, BreakdownRow* whole, std::vector<BreakdownRow>* steps) {
  const std::vector<DeviceTracks> devices = FindDeviceTracks(context.trace());
  if (!devices.empty()) {
    RowBuilder rows(context, Basis::kDevice, whole, steps);
    for (const DeviceTracks& device : devices) rows.AddDevice(MakeCursors(context, device));
    return;
  }
  const CpuActivity activity = FindCpuActivity(context);
  if (!activity.any) {
    *whole = BreakdownRow();
    whole->rank_index = context.rank_index;
    return;
  }
  RowBuilder rows(context, Basis::kCpu, whole, steps);
  const WindowedSums sums = SumOverWindows(MakeCursors(activity), rows.windows());
  rows.AddWhole(sums.whole, activity.first_ns, activity.last_ns);
  rows.AddSteps(sums.windows);
}

namespace {

/// A duration; without a basis it means nothing, and is null, never 0.
template <int64_t BreakdownRow::*kMember>
RowColumn<BreakdownRow> Time(std::string_view name, std::string_view meaning) {
  return {name, ColumnType::kInteger, "ns", meaning, "no basis", [](const TableSource&, const BreakdownRow& row) {
            return row.basis == Basis::kNone ? Cell() : Cell(row.*kMember);
          }};
}

/// An instant of a row, as its rank's clock has it or on the aligned one.
RowColumn<BreakdownRow> Instant(std::string_view name, std::string_view meaning,
                                int64_t (*instant_ns)(const BreakdownRow&), bool aligned, ColumnPlace place) {
  return {name,
          ColumnType::kInteger,
          aligned ? "ns, aligned clock" : "ns, the rank's own clock",
          meaning,
          "no basis",
          [instant_ns, aligned](const TableSource& source, const BreakdownRow& row) -> Cell {
            if (row.basis == Basis::kNone) return {};
            const int64_t trace_ns = instant_ns(row);
            return aligned ? source.run.ranks[row.rank_index].clock.ToRun(trace_ns) : trace_ns;
          },
          place};
}

std::vector<RowColumn<BreakdownRow>> BreakdownColumns() {
  using Row = BreakdownRow;
  const auto start_ns = [](const Row& row) { return row.start_ns; };
  const auto end_ns = [](const Row& row) { return row.start_ns + row.span_ns; };
  return {
      NamedField<&Row::basis, BasisName>("basis",
                                         "What it was computed from: `device` events, the `cpu` tracks of a CPU-only "
                                         "job, or `none`: neither, all durations are null.",
                                         {"device", "cpu", "none"}),
      Instant("start_ns", "Start of the span.", start_ns, false, ColumnPlace::kNotInSql),
      Instant("start_ns", "Start of the span.", start_ns, true, ColumnPlace::kOnlyInSql),
      Instant("end_ns", "End of the span.", end_ns, true, ColumnPlace::kOnlyInSql),
      Instant("trace_start_ns", "Start of the span, as the file has it.", start_ns, false, ColumnPlace::kOnlyInSql),
      Time<&Row::span_ns>("span_ns", "First start to last end of the events counted."),
      Time<&Row::busy_ns>("busy_ns", "Union of all of them."),
      Time<&Row::compute_ns>("compute_ns", "Union of the kernels that are not communication."),
      Time<&Row::communication_ns>("communication_ns", "Union of the communication kernels."),
      Time<&Row::exposed_communication_ns>("exposed_communication_ns", "Communication while no compute kernel runs."),
      Time<&Row::overlapped_communication_ns>("overlapped_communication_ns",
                                              "Communication while a compute kernel runs."),
      Time<&Row::memory_ns>("memory_ns", "Union of copies and sets."),
      Time<&Row::exposed_memory_ns>("exposed_memory_ns",
                                    "Copies and sets while neither compute nor communication runs."),
      Time<&Row::idle_ns>("idle_ns", "`span_ns` less `busy_ns`."),
      {"communication_overlap_ratio", ColumnType::kReal, "0..1", "`overlapped_communication_ns` / `communication_ns`.",
       "no communication, or no basis",
       [](const TableSource&, const Row& row) {
         const auto ratio = row.communication_overlap_ratio();
         return row.basis == Basis::kNone || !ratio ? Cell() : Cell(*ratio);
       }},
  };
}

std::vector<RowColumn<BreakdownRow>> StepColumns() {
  std::vector<RowColumn<BreakdownRow>> columns = BreakdownColumns();
  auto step = columns.insert(
      columns.begin(),
      Field<&BreakdownRow::step_number>(
          "step", "", "Number of the step: N of `ProfilerStep#N`, or the running index from 0 with `--step-name`."));
  step->is_key = true;
  return columns;
}

}  // namespace

Pass BreakdownPass() {
  return ReducingPass<Breakdown, Breakdown>(
      {.question = "Where did the time go: compute, communication, memory, idle?",
       .tables = {DeclareRankTable("breakdown", "breakdown", "Where the time of each rank went, over its whole window",
                                   &Breakdown::ranks, BreakdownColumns()),
                  DeclareRankTable("steps", "steps",
                                   "Where the time of each step of each rank went; empty when no file marks steps",
                                   &Breakdown::steps, StepColumns())}},
      [](const RankContext& context) {
        Breakdown rank;
        ComputeBreakdown(context, &rank.ranks.emplace_back(), &rank.steps);
        return rank;
      },
      [](PassContext&, std::vector<Breakdown> ranks) {
        Breakdown all;
        for (size_t i = 0; i < ranks.size(); ++i) {
          BreakdownRow& row = all.ranks.emplace_back();
          if (!ranks[i].ranks.empty()) row = ranks[i].ranks.front();
          row.rank_index = i;
          MoveRows(&ranks[i].steps, &all.steps);
        }
        return all;
      });
}

}  // namespace lockstep::analysis
