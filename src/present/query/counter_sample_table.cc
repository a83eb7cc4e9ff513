#include <tuple>

#include "present/query/table.h"
#include "present/query/tables.h"
#include "present/query/time_range.h"

namespace lockstep::query {
namespace {

using model::CounterSeries;
using Type = ColumnType;

struct CounterColumn {
  enum : int { kRank, kWindow, kDevice, kName, kUnit, kTimeNs, kTraceTimeNs, kValue };
};

const TableSpec& CounterSampleSpec() {
  static const TableSpec spec{
      "counter_samples",
      "Every sample of a hardware metric, or of what the program counts",
      "",
      {{"rank", Type::kInteger, "", "Global rank of the process.", ""},
       {"window", Type::kInteger, "", "0 for the first trace of this rank in time, 1 for the next, and so on.", ""},
       {"device", Type::kInteger, "", "Device ordinal.", "it is of the process or its host"},
       {"name", Type::kText, "", "As the source calls it.", ""},
       {"unit", Type::kText, "", "Unit of the values.", "the source does not say"},
       {"time_ns", Type::kInteger, "ns, aligned clock", "When.", ""},
       {"trace_time_ns", Type::kInteger, "ns, the rank's own clock", "When, as the file has it.", ""},
       {"value", Type::kReal, "`unit`", "What it was from then on.", ""}}};
  return spec;
}

/// Walks ranks, their series, and of each the stretch of time that is asked for.
class CounterScan : public Cursor {
 public:
  explicit CounterScan(const Source& source) : source_(source) {}

  void Filter(std::span<const BoundConstraint> constraints) override {
    rank_index_ = 0;
    series_ = 0;
    id_ = 0;
    end_rank_ = source_.run().ranks.size();
    rank_.reset();
    time_range_ = {};
    for (const BoundConstraint& bound : constraints) {
      if (bound.is_null()) end_rank_ = 0;  // nothing compares with NULL
      if (bound.constraint.column == CounterColumn::kRank && bound.integer()) rank_ = bound.integer();
      if (bound.constraint.column == CounterColumn::kTimeNs) time_range_.Narrow(bound);
    }
    BeginSeries();
  }

  bool done() const override { return rank_index_ >= end_rank_; }

  void Next() override {
    ++id_;
    if (++row_ < end_) return;
    ++series_;
    BeginSeries();
  }

  void Column(int column, CellOut& out) const override {
    const model::RankTrace& trace = source_.rank(rank_index_);
    const CounterSeries& series = trace.counters[series_];
    switch (column) {
      case CounterColumn::kRank: return out.Int(trace.rank.value);
      case CounterColumn::kWindow: return out.Int(trace.window);
      case CounterColumn::kDevice: return series.device ? out.Int(series.device->value) : out.Null();
      case CounterColumn::kName: return out.Static(series.name);
      case CounterColumn::kUnit: return out.StaticOrNull(series.unit);
      case CounterColumn::kTimeNs: return out.Int(trace.clock.ToRun(series.time_ns[row_]));
      case CounterColumn::kTraceTimeNs: return out.Int(series.time_ns[row_]);
      case CounterColumn::kValue: return out.Real(series.value[row_]);
      default: return out.Null();
    }
  }

  int64_t row_id() const override { return static_cast<int64_t>(id_); }

 private:
  void BeginSeries() {
    for (; rank_index_ < end_rank_; ++rank_index_, series_ = 0) {
      const model::RankTrace& trace = source_.rank(rank_index_);
      if (rank_ && *rank_ != trace.rank.value) continue;
      for (; series_ < trace.counters.size(); ++series_) {
        std::tie(row_, end_) = time_range_.RowsOf(trace.counters[series_].time_ns, trace.clock);
        if (row_ < end_) return;
      }
    }
  }

  const Source& source_;
  std::optional<int64_t> rank_;
  TimeRange time_range_;
  size_t rank_index_ = 0;
  size_t end_rank_ = 0;
  size_t series_ = 0;
  size_t row_ = 0;
  size_t end_ = 0;
  uint64_t id_ = 0;
};

class CounterSampleTable : public Table {
 public:
  const TableSpec& spec() const override { return CounterSampleSpec(); }

  bool CanUse(const Constraint& constraint) const override {
    return constraint.column == CounterColumn::kTimeNs ||
           (constraint.op == SQLITE_INDEX_CONSTRAINT_EQ && constraint.column == CounterColumn::kRank);
  }

  Estimate EstimateOf(const Source* source, std::span<const Constraint> constraints) const override {
    double rows = 0;
    if (source == nullptr) {
      rows = 1e5;
    } else {
      for (const model::RankTrace& trace : source->run().ranks) {
        for (const CounterSeries& series : trace.counters) rows += static_cast<double>(series.size());
      }
    }
    for (size_t i = 0; i < constraints.size(); ++i) rows /= 4;
    return {rows, rows};
  }

  bool IsSorted(const Source* source, std::span<const Constraint>, int column) const override {
    return column == CounterColumn::kWindow ||
           (column == CounterColumn::kRank && source != nullptr && source->HasOneWindow());
  }

  std::unique_ptr<Cursor> Open(const Source& source) const override { return std::make_unique<CounterScan>(source); }
};

}  // namespace

std::unique_ptr<Table> MakeCounterSampleTable() { return std::make_unique<CounterSampleTable>(); }

}  // namespace lockstep::query
