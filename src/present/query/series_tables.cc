#include <fmt/format.h>

#include <tuple>
#include <utility>

#include "present/query/row_table.h"
#include "present/query/tables.h"
#include "present/query/time_range.h"

namespace lockstep::query {
namespace {

using model::RankTrace;
using Type = ColumnType;

/// A row: of a rank's trace, of one of its series.
struct SeriesPlace {
  const Source& source;
  const RankTrace& trace;
  size_t series = 0;
  size_t row = 0;
};

/// A column, and how a row gives it.
struct SeriesField {
  ColumnSpec spec;
  void (*write)(const SeriesPlace& place, CellOut& out);
};

/// What each rank has several lists of, each in the order of time.
struct SeriesKind {
  std::string_view name;
  std::string_view sentence;
  std::vector<SeriesField> fields;  ///< Behind `rank` and `window`.
  size_t (*series_count)(const RankTrace& trace);
  size_t (*size)(const RankTrace& trace, size_t series);
  /// The rank's own instants, for what has the column `time_ns`; null where rows are not looked up by it.
  std::span<const int64_t> (*times)(const RankTrace& trace, size_t series) = nullptr;
};

/// Walks ranks, their series, and of each the stretch of time that is asked for.
class SeriesScan : public Cursor {
 public:
  SeriesScan(const Source& source, const SeriesKind& kind, int time_column)
      : source_(source), kind_(kind), time_column_(time_column) {}

  void Filter(std::span<const BoundConstraint> constraints) override {
    rank_index_ = series_ = 0;
    first_id_ = 0;
    end_rank_ = source_.run().ranks.size();
    rank_.reset();
    window_.reset();
    time_range_ = {};
    for (const BoundConstraint& bound : constraints) {
      if (bound.is_null()) end_rank_ = 0;  // nothing compares with NULL
      if (bound.constraint.column == kRankColumn && bound.integer()) rank_ = bound.integer();
      if (bound.constraint.column == kWindowColumn && bound.integer()) window_ = bound.integer();
      if (bound.constraint.column == time_column_) time_range_.Narrow(bound);
    }
    BeginSeries();
  }

  bool done() const override { return rank_index_ >= end_rank_; }

  void Next() override {
    if (++row_ < end_) return;
    LeaveSeries();
    BeginSeries();
  }

  void Column(int column, CellOut& out) const override {
    kind_.fields[static_cast<size_t>(column)].write({source_, source_.rank(rank_index_), series_, row_}, out);
  }

  int64_t row_id() const override { return static_cast<int64_t>(first_id_ + row_); }

 private:
  void LeaveSeries() {
    first_id_ += kind_.size(source_.rank(rank_index_), series_);
    ++series_;
  }

  void BeginSeries() {
    for (; rank_index_ < end_rank_; ++rank_index_, series_ = 0) {
      const RankTrace& trace = source_.rank(rank_index_);
      const bool wanted =
          rank_.value_or(trace.rank.value) == trace.rank.value && window_.value_or(trace.window) == trace.window;
      for (; series_ < kind_.series_count(trace); LeaveSeries()) {
        if (!wanted) continue;
        row_ = 0;
        end_ = kind_.size(trace, series_);
        if (kind_.times != nullptr) std::tie(row_, end_) = time_range_.RowsOf(kind_.times(trace, series_), trace.clock);
        if (row_ < end_) return;
      }
    }
  }

  const Source& source_;
  const SeriesKind& kind_;
  const int time_column_;
  std::optional<int64_t> rank_, window_;
  TimeRange time_range_;
  size_t rank_index_ = 0;
  size_t end_rank_ = 0;
  size_t series_ = 0;
  size_t row_ = 0;
  size_t end_ = 0;
  uint64_t first_id_ = 0;  // rows of the series before
};

class SeriesTable : public Table {
 public:
  explicit SeriesTable(SeriesKind kind) : kind_(std::move(kind)) {
    kind_.fields.insert(
        kind_.fields.begin(),
        {{{"rank", Type::kInteger, "", "Global rank of the process.", ""},
          [](const SeriesPlace& place, CellOut& out) { out.Int(place.trace.rank.value); }},
         {{"window", Type::kInteger, "", "0 for the first trace of this rank in time, 1 for the next, and so on.", ""},
          [](const SeriesPlace& place, CellOut& out) { out.Int(place.trace.window); }}});
    spec_ = {kind_.name, kind_.sentence, "", {}};
    for (const SeriesField& field : kind_.fields) {
      if (field.spec.name == "time_ns") time_column_ = static_cast<int>(spec_.columns.size());
      spec_.columns.push_back(field.spec);
    }
  }

  const TableSpec& spec() const override { return spec_; }

  bool CanUse(const Constraint& constraint) const override {
    return constraint.column == time_column_ ||
           (constraint.op == SQLITE_INDEX_CONSTRAINT_EQ &&
            (constraint.column == kRankColumn || constraint.column == kWindowColumn));
  }

  Estimate EstimateOf(const Source* source, std::span<const Constraint> constraints) const override {
    double rows = source == nullptr ? 1e5 : 0;
    for (size_t i = 0; source != nullptr && i < source->run().ranks.size(); ++i) {
      const RankTrace& trace = source->rank(i);
      for (size_t s = 0; s < kind_.series_count(trace); ++s) rows += static_cast<double>(kind_.size(trace, s));
    }
    for (size_t i = 0; i < constraints.size(); ++i) rows /= 4;
    return {rows, rows};
  }

  bool IsSorted(const Source* source, std::span<const Constraint>, int column) const override {
    return column == kWindowColumn || (column == kRankColumn && source != nullptr && source->HasOneWindow());
  }

  std::unique_ptr<Cursor> Open(const Source& source) const override {
    return std::make_unique<SeriesScan>(source, kind_, time_column_);
  }

 private:
  SeriesKind kind_;
  TableSpec spec_;
  int time_column_ = -1;
};

int64_t MemoryTime(const SeriesPlace& place) { return place.trace.memory.time_ns[place.row]; }

void Recorded(int64_t bytes, CellOut& out) { bytes < 0 ? out.Null() : out.Int(bytes); }

const model::CounterSeries& SeriesOf(const SeriesPlace& place) { return place.trace.counters[place.series]; }

// Of `linked_spans` the first series are spans, the second requests.
bool IsRequest(const SeriesPlace& place) { return place.series == 1; }
const model::LinkedSpan& SpanOf(const SeriesPlace& place) { return place.trace.linked_spans[place.row]; }
const model::RequestRecord& RequestOf(const SeriesPlace& place) { return place.trace.requests[place.row]; }

/// Calls `use` with what is alike in both.
template <typename Use>
auto WithEither(const SeriesPlace& place, Use use) {
  return IsRequest(place) ? use(RequestOf(place)) : use(SpanOf(place));
}
int64_t StartOf(const SeriesPlace& place) {
  return WithEither(place, [](const auto& either) { return either.start_ns; });
}
int64_t DurationOf(const SeriesPlace& place) {
  return WithEither(place, [](const auto& either) { return either.duration_ns; });
}
const model::TraceContext& ContextOf(const SeriesPlace& place) {
  return *WithEither(place, [](const auto& either) { return &either.context; });
}

}  // namespace

std::unique_ptr<Table> MakeMemoryEventTable() {
  return std::make_unique<SeriesTable>(SeriesKind{
      "memory_events",
      "Every allocation and release that the caching allocator recorded",
      {{{"device", Type::kInteger, "", "Device ordinal; -1 = CPU.", ""},
        [](const SeriesPlace& place, CellOut& out) { out.Int(place.trace.memory.device[place.row]); }},
       {{"time_ns", Type::kInteger, "ns, aligned clock", "When.", ""},
        [](const SeriesPlace& place, CellOut& out) { out.Int(place.trace.clock.ToRun(MemoryTime(place))); }},
       {{"trace_time_ns", Type::kInteger, "ns, the rank's own clock", "When, as the file has it.", ""},
        [](const SeriesPlace& place, CellOut& out) { out.Int(MemoryTime(place)); }},
       {{"change_bytes", Type::kInteger, "bytes", "Above 0 allocates, below 0 frees.", ""},
        [](const SeriesPlace& place, CellOut& out) { out.Int(place.trace.memory.change_bytes[place.row]); }},
       {{"allocated_bytes", Type::kInteger, "bytes", "`Total Allocated` after it.", "not recorded"},
        [](const SeriesPlace& place, CellOut& out) { Recorded(place.trace.memory.allocated_bytes[place.row], out); }},
       {{"reserved_bytes", Type::kInteger, "bytes", "`Total Reserved` after it.", "not recorded"},
        [](const SeriesPlace& place, CellOut& out) { Recorded(place.trace.memory.reserved_bytes[place.row], out); }}},
      [](const RankTrace&) { return size_t{1}; },
      [](const RankTrace& trace, size_t) { return trace.memory.size(); },
      [](const RankTrace& trace, size_t) {
        return std::span<const int64_t>(trace.memory.time_ns.data(), trace.memory.size());
      }});
}

std::unique_ptr<Table> MakeCounterSampleTable() {
  return std::make_unique<SeriesTable>(SeriesKind{
      "counter_samples",
      "Every sample of a hardware metric, or of what the program counts",
      {{{"device", Type::kInteger, "", "Device ordinal.", "it is of the process or its host"},
        [](const SeriesPlace& place, CellOut& out) {
          SeriesOf(place).device ? out.Int(SeriesOf(place).device->value) : out.Null();
        }},
       {{"name", Type::kText, "", "As the source calls it.", ""},
        [](const SeriesPlace& place, CellOut& out) { out.Static(SeriesOf(place).name); }},
       {{"unit", Type::kText, "", "Unit of the values.", "the source does not say"},
        [](const SeriesPlace& place, CellOut& out) { out.StaticOrNull(SeriesOf(place).unit); }},
       {{"time_ns", Type::kInteger, "ns, aligned clock", "When.", ""},
        [](const SeriesPlace& place, CellOut& out) {
          out.Int(place.trace.clock.ToRun(SeriesOf(place).time_ns[place.row]));
        }},
       {{"trace_time_ns", Type::kInteger, "ns, the rank's own clock", "When, as the file has it.", ""},
        [](const SeriesPlace& place, CellOut& out) { out.Int(SeriesOf(place).time_ns[place.row]); }},
       {{"value", Type::kReal, "`unit`", "What it was from then on.", ""},
        [](const SeriesPlace& place, CellOut& out) { out.Real(SeriesOf(place).value[place.row]); }}},
      [](const RankTrace& trace) { return trace.counters.size(); },
      [](const RankTrace& trace, size_t series) { return trace.counters[series].size(); },
      [](const RankTrace& trace, size_t series) {
        return std::span<const int64_t>(trace.counters[series].time_ns.data(), trace.counters[series].size());
      }});
}

std::unique_ptr<Table> MakeLinkedSpanTable() {
  using Place = SeriesPlace;
  return std::make_unique<SeriesTable>(SeriesKind{
      "linked_spans",
      "Every span with a W3C trace context, and every request that a program recorded",
      {{{"is_request", Type::kInteger, "", "1: a request; 0: a span.", ""},
        [](const Place& place, CellOut& out) { out.Bool(IsRequest(place)); }},
       {{"name", Type::kText, "", "Of the span; kind of the request.", ""},
        [](const Place& place, CellOut& out) {
          out.Static(place.source.run().names[WithEither(place, [](const auto& either) { return either.name; })]);
        }},
       {{"process_id", Type::kInteger, "", "Of the span.", "a request"},
        [](const Place& place, CellOut& out) { IsRequest(place) ? out.Null() : out.Int(SpanOf(place).process_id); }},
       {{"thread_id", Type::kInteger, "", "Of the span.", "a request"},
        [](const Place& place, CellOut& out) { IsRequest(place) ? out.Null() : out.Int(SpanOf(place).thread_id); }},
       {{"start_ns", Type::kInteger, "ns, aligned clock", "Start.", ""},
        [](const Place& place, CellOut& out) { out.Int(place.trace.clock.ToRun(StartOf(place))); }},
       {{"end_ns", Type::kInteger, "ns, aligned clock", "End.", ""},
        [](const Place& place, CellOut& out) { out.Int(place.trace.clock.ToRun(StartOf(place) + DurationOf(place))); }},
       {{"duration_ns", Type::kInteger, "ns", "Duration, by the rank's own clock.", ""},
        [](const Place& place, CellOut& out) { out.Int(DurationOf(place)); }},
       {{"trace_start_ns", Type::kInteger, "ns, the rank's own clock", "Start, as the file has it.", ""},
        [](const Place& place, CellOut& out) { out.Int(StartOf(place)); }},
       {{"trace_id", Type::kText, "", "Trace id, 32 hexadecimal digits.", "it has no context"},
        [](const Place& place, CellOut& out) {
          const model::TraceContext& context = ContextOf(place);
          context.known() ? out.Copy(fmt::format("{:016x}{:016x}", context.trace_high, context.trace_low)) : out.Null();
        }},
       {{"span_id", Type::kText, "", "Its own span id, 16 hexadecimal digits.", "it has no context"},
        [](const Place& place, CellOut& out) {
          ContextOf(place).known() ? out.Copy(fmt::format("{:016x}", ContextOf(place).span_id)) : out.Null();
        }},
       {{"parent_span_id", Type::kText, "", "Of the span that it was called from, perhaps in another process.",
         "it begins its trace"},
        [](const Place& place, CellOut& out) {
          ContextOf(place).parent_id != 0 ? out.Copy(fmt::format("{:016x}", ContextOf(place).parent_id)) : out.Null();
        }},
       {{"first_output_ns", Type::kInteger, "ns", "From its start to the first output.", "a span, or no output"},
        [](const Place& place, CellOut& out) {
          const bool known = IsRequest(place) && RequestOf(place).first_output_ns;
          known ? out.Int(*RequestOf(place).first_output_ns - StartOf(place)) : out.Null();
        }},
       {{"output_count", Type::kInteger, "count", "Tokens, or what the program counts.", "a span"},
        [](const Place& place, CellOut& out) {
          IsRequest(place) ? out.Int(RequestOf(place).output_count) : out.Null();
        }},
       {{"failed", Type::kInteger, "", "1: the request failed.", "a span"},
        [](const Place& place, CellOut& out) { IsRequest(place) ? out.Bool(RequestOf(place).failed) : out.Null(); }},
       {{"unfinished", Type::kInteger, "", "1: it was under way when the recording ended.", "a span"},
        [](const Place& place, CellOut& out) {
          IsRequest(place) ? out.Bool(RequestOf(place).unfinished) : out.Null();
        }}},
      [](const RankTrace&) { return size_t{2}; },
      [](const RankTrace& trace, size_t series) {
        return series == 1 ? trace.requests.size() : trace.linked_spans.size();
      }});
}

}  // namespace lockstep::query
