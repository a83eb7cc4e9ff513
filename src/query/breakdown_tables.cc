#include "analysis/breakdown.h"
#include "query/rank_fields.h"
#include "query/tables.h"

namespace lockstep::query {
namespace {

using analysis::BreakdownRow;
using Type = ColumnType;

// Without a basis the durations mean nothing: they are NULL, never 0.
template <int64_t BreakdownRow::*kField>
void WriteTime(const Source&, const BreakdownRow& row, CellOut& out) {
  row.basis == analysis::Basis::kNone ? out.Null() : out.Int(row.*kField);
}

template <int64_t BreakdownRow::*kField>
Field<BreakdownRow> TimeField(std::string_view name, std::string_view meaning) {
  return {{name, Type::kInteger, "ns", meaning, "no basis"}, WriteTime<kField>};
}

void WriteInstant(const Source& source, const BreakdownRow& row, int64_t trace_ns, CellOut& out) {
  row.basis == analysis::Basis::kNone ? out.Null() : out.Int(source.rank(row.rank_index).clock.ToRun(trace_ns));
}

std::vector<Field<BreakdownRow>> Fields(bool per_step) {
  std::vector<Field<BreakdownRow>> fields = {RankField<BreakdownRow>(), WindowField<BreakdownRow>()};
  if (per_step) {
    fields.push_back(
        {{"step", Type::kInteger, "",
          "Number of the step: N of `ProfilerStep#N`, or the running index from 0 with `--step-name`.", ""},
         [](const Source&, const BreakdownRow& row, CellOut& out) { out.Optional(row.step_number); },
         [](const Source&, const BreakdownRow& row) { return row.step_number; }});
  }
  const std::vector<Field<BreakdownRow>> rest = {
      {{"basis", Type::kText, "",
        "What it was computed from: `device` events, the `cpu` tracks of a CPU-only job, or `none`.", ""},
       [](const Source&, const BreakdownRow& row, CellOut& out) { out.Static(analysis::BasisName(row.basis)); }},
      {{"start_ns", Type::kInteger, "ns, aligned clock", "Start of the span.", "no basis"},
       [](const Source& source, const BreakdownRow& row, CellOut& out) {
         WriteInstant(source, row, row.start_ns, out);
       }},
      {{"end_ns", Type::kInteger, "ns, aligned clock", "End of the span.", "no basis"},
       [](const Source& source, const BreakdownRow& row, CellOut& out) {
         WriteInstant(source, row, row.start_ns + row.span_ns, out);
       }},
      {{"trace_start_ns", Type::kInteger, "ns, the rank's own clock", "Start of the span, as the file has it.",
        "no basis"},
       WriteTime<&BreakdownRow::start_ns>},
      TimeField<&BreakdownRow::span_ns>("span_ns", "First start to last end of the events counted."),
      TimeField<&BreakdownRow::busy_ns>("busy_ns", "Union of all of them."),
      TimeField<&BreakdownRow::compute_ns>("compute_ns", "Union of the kernels that are not communication."),
      TimeField<&BreakdownRow::communication_ns>("communication_ns", "Union of the communication kernels."),
      TimeField<&BreakdownRow::exposed_communication_ns>("exposed_communication_ns",
                                                         "Communication while no compute kernel runs."),
      TimeField<&BreakdownRow::overlapped_communication_ns>("overlapped_communication_ns",
                                                            "Communication while a compute kernel runs."),
      TimeField<&BreakdownRow::memory_ns>("memory_ns", "Union of copies and sets."),
      TimeField<&BreakdownRow::exposed_memory_ns>("exposed_memory_ns",
                                                  "Copies and sets while neither compute nor communication runs."),
      TimeField<&BreakdownRow::idle_ns>("idle_ns", "`span_ns` less `busy_ns`."),
      {{"communication_overlap_ratio", Type::kReal, "0..1", "`overlapped_communication_ns` / `communication_ns`.",
        "no communication, or no basis"},
       [](const Source&, const BreakdownRow& row, CellOut& out) {
         row.basis == analysis::Basis::kNone ? out.Null() : out.Optional(row.communication_overlap_ratio());
       }},
  };
  fields.insert(fields.end(), rest.begin(), rest.end());
  return fields;
}

}  // namespace

void AddBreakdownTables(TableList* tables) {
  tables->push_back(std::make_unique<RowTable<BreakdownRow>>(RowTable<BreakdownRow>::Parts{
      .name = "steps",
      .sentence = "Where the time of each step of each rank went",
      .pass = "breakdown",
      .fields = Fields(true),
      .rows =
          [](const Source& source) {
            return std::span<const BreakdownRow>(source.result().Get<analysis::Breakdown>().steps);
          },
      .sorted_by = {kWindowColumn, kRankColumn}}));
  tables->push_back(std::make_unique<RowTable<BreakdownRow>>(RowTable<BreakdownRow>::Parts{
      .name = "breakdown",
      .sentence = "Where the time of each rank went, over its whole window",
      .pass = "breakdown",
      .fields = Fields(false),
      .rows =
          [](const Source& source) {
            return std::span<const BreakdownRow>(source.result().Get<analysis::Breakdown>().ranks);
          },
      .sorted_by = {kWindowColumn, kRankColumn}}));
}

}  // namespace lockstep::query
