#include <fmt/format.h>

#include "present/query/table.h"
#include "present/query/tables.h"

namespace lockstep::query {
namespace {

using Type = ColumnType;

struct SpanColumn {
  enum : int {
    kRank,
    kWindow,
    kIsRequest,
    kName,
    kProcessId,
    kThreadId,
    kStartNs,
    kEndNs,
    kDurationNs,
    kTraceStartNs,
    kTraceId,
    kSpanId,
    kParentSpanId,
    kFirstOutputNs,
    kOutputCount,
    kFailed,
    kUnfinished
  };
};

const TableSpec& LinkedSpanSpec() {
  static const TableSpec spec{
      "linked_spans",
      "Every span with a W3C trace context, and every request that a program recorded",
      "",
      {{"rank", Type::kInteger, "", "Global rank of the process.", ""},
       {"window", Type::kInteger, "", "0 for the first trace of this rank in time, 1 for the next, and so on.", ""},
       {"is_request", Type::kInteger, "", "1: a request; 0: a span.", ""},
       {"name", Type::kText, "", "Of the span; kind of the request.", ""},
       {"process_id", Type::kInteger, "", "Of the span.", "a request"},
       {"thread_id", Type::kInteger, "", "Of the span.", "a request"},
       {"start_ns", Type::kInteger, "ns, aligned clock", "Start.", ""},
       {"end_ns", Type::kInteger, "ns, aligned clock", "End.", ""},
       {"duration_ns", Type::kInteger, "ns", "Duration, by the rank's own clock.", ""},
       {"trace_start_ns", Type::kInteger, "ns, the rank's own clock", "Start, as the file has it.", ""},
       {"trace_id", Type::kText, "", "Trace id, 32 hexadecimal digits.", "it has no context"},
       {"span_id", Type::kText, "", "Its own span id, 16 hexadecimal digits.", "it has no context"},
       {"parent_span_id", Type::kText, "", "Of the span that it was called from, perhaps in another process.",
        "it begins its trace"},
       {"first_output_ns", Type::kInteger, "ns", "From its start to the first output.", "a span, or no output"},
       {"output_count", Type::kInteger, "count", "Tokens, or what the program counts.", "a span"},
       {"failed", Type::kInteger, "", "1: the request failed.", "a span"},
       {"unfinished", Type::kInteger, "", "1: it was under way when the recording ended.", "a span"}}};
  return spec;
}

/// Spans of a rank, then its requests; ranks in order.
class LinkedSpanScan : public Cursor {
 public:
  explicit LinkedSpanScan(const Source& source) : source_(source) {}

  void Filter(std::span<const BoundConstraint>) override {
    rank_index_ = 0;
    row_ = 0;
    row_id_ = 0;
    SkipEmpty();
  }

  bool done() const override { return rank_index_ >= source_.run().ranks.size(); }

  void Next() override {
    ++row_;
    ++row_id_;
    SkipEmpty();
  }

  void Column(int column, CellOut& out) const override {
    const model::RankTrace& trace = source_.rank(rank_index_);
    if (column == SpanColumn::kRank) return out.Int(trace.rank.value);
    if (column == SpanColumn::kWindow) return out.Int(trace.window);
    if (row_ < trace.linked_spans.size()) {
      const model::LinkedSpan& span = trace.linked_spans[row_];
      switch (column) {
        case SpanColumn::kIsRequest: return out.Bool(false);
        case SpanColumn::kProcessId: return out.Int(span.process_id);
        case SpanColumn::kThreadId: return out.Int(span.thread_id);
        default: return Common(column, trace, span.start_ns, span.duration_ns, span.name, span.context, out);
      }
    }
    const model::RequestRecord& request = trace.requests[row_ - trace.linked_spans.size()];
    switch (column) {
      case SpanColumn::kIsRequest: return out.Bool(true);
      case SpanColumn::kFirstOutputNs:
        return request.first_output_ns ? out.Int(*request.first_output_ns - request.start_ns) : out.Null();
      case SpanColumn::kOutputCount: return out.Int(request.output_count);
      case SpanColumn::kFailed: return out.Bool(request.failed);
      case SpanColumn::kUnfinished: return out.Bool(request.unfinished);
      default: return Common(column, trace, request.start_ns, request.duration_ns, request.name, request.context, out);
    }
  }

  int64_t row_id() const override { return row_id_; }

 private:
  void Common(int column, const model::RankTrace& trace, int64_t start_ns, int64_t duration_ns, NameId name,
              const model::TraceContext& context, CellOut& out) const {
    switch (column) {
      case SpanColumn::kName: return out.Static(source_.run().names[name]);
      case SpanColumn::kStartNs: return out.Int(trace.clock.ToRun(start_ns));
      case SpanColumn::kEndNs: return out.Int(trace.clock.ToRun(start_ns + duration_ns));
      case SpanColumn::kDurationNs: return out.Int(duration_ns);
      case SpanColumn::kTraceStartNs: return out.Int(start_ns);
      case SpanColumn::kTraceId:
        return context.known() ? out.Copy(fmt::format("{:016x}{:016x}", context.trace_high, context.trace_low))
                               : out.Null();
      case SpanColumn::kSpanId: return context.known() ? out.Copy(fmt::format("{:016x}", context.span_id)) : out.Null();
      case SpanColumn::kParentSpanId:
        return context.parent_id != 0 ? out.Copy(fmt::format("{:016x}", context.parent_id)) : out.Null();
      default: return out.Null();
    }
  }

  void SkipEmpty() {
    while (!done()) {
      const model::RankTrace& trace = source_.rank(rank_index_);
      if (row_ < trace.linked_spans.size() + trace.requests.size()) return;
      ++rank_index_;
      row_ = 0;
    }
  }

  const Source& source_;
  size_t rank_index_ = 0;
  size_t row_ = 0;  ///< Of the rank.
  int64_t row_id_ = 0;
};

class LinkedSpanTable : public Table {
 public:
  const TableSpec& spec() const override { return LinkedSpanSpec(); }

  bool CanUse(const Constraint&) const override { return false; }

  Estimate EstimateOf(const Source* source, std::span<const Constraint>) const override {
    if (source == nullptr) return {1e4, 1e4};
    double rows = 0;
    for (const model::RankTrace& trace : source->run().ranks) {
      rows += static_cast<double>(trace.linked_spans.size() + trace.requests.size());
    }
    return {rows, rows};
  }

  bool IsSorted(const Source*, std::span<const Constraint>, int column) const override {
    return column == SpanColumn::kWindow;
  }

  std::unique_ptr<Cursor> Open(const Source& source) const override { return std::make_unique<LinkedSpanScan>(source); }
};

}  // namespace

std::unique_ptr<Table> MakeLinkedSpanTable() { return std::make_unique<LinkedSpanTable>(); }

}  // namespace lockstep::query
