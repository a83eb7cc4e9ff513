// What `lockstep run --stages` recorded: each step of each rank in stages, and what they add to a step of the job.
#include <memory>

#include "analysis/frontier/job_stages.h"
#include "model/stages/stage.h"
#include "present/query/row_table.h"
#include "present/query/tables.h"

namespace lockstep::query {
namespace {

using Type = ColumnType;

const model::RankStages& RankOf(const Source& source, const StagePlace& place) {
  return source.job_stages()->ranks[place.rank_idx];
}
const model::StepStages& StepOf(const Source& source, const StagePlace& place) {
  return RankOf(source, place).steps[place.step_idx];
}
const model::StageSpan& SpanOf(const Source& source, const StagePlace& place) {
  return StepOf(source, place).spans[place.span_idx];
}

/// The clock of the rank's first trace; of a rank that has none its wall clock counts as it is.
int64_t ToRun(const Source& source, int32_t rank, int64_t wall_ns) {
  for (const model::RankTrace& trace : source.run().ranks) {
    if (trace.rank.value == rank) return trace.clock.ToRun(wall_ns);
  }
  return wall_ns;
}

}  // namespace

std::unique_ptr<Table> MakeStageTable() {
  using Row = StagePlace;
  return std::make_unique<RowTable<Row>>(RowTable<Row>::Parts{
      .name = "stages",
      .sentence = "Every part of every step of every rank that is in one stage: they add up to the step",
      .pass = "",
      .fields = {{{"rank", Type::kInteger, "", "Global rank of the process.", ""},
                  [](const Source& s, const Row& row, CellOut& out) { out.Int(RankOf(s, row).rank); },
                  [](const Source& s, const Row& row) { return std::optional<int64_t>(RankOf(s, row).rank); }},
                 {{"step", Type::kInteger, "", "Number of the step, as its rank counts them from its start.", ""},
                  [](const Source& s, const Row& row, CellOut& out) { out.Int(StepOf(s, row).number); },
                  [](const Source& s, const Row& row) { return std::optional<int64_t>(StepOf(s, row).number); }},
                 {{"stage", Type::kText, "", "`input`, `h2d`, `forward`, `backward`, `optimizer`, `comm_exposed`, ...",
                   ""},
                  [](const Source& s, const Row& row, CellOut& out) { out.Static(StageName(SpanOf(s, row).stage)); }},
                 {{"start_ns", Type::kInteger, "ns, aligned clock", "Start.", ""},
                  [](const Source& s, const Row& row, CellOut& out) {
                    out.Int(ToRun(s, RankOf(s, row).rank, row.start_ns));
                  }},
                 {{"duration_ns", Type::kInteger, "ns", "Duration, by the rank's own clock.", ""},
                  [](const Source& s, const Row& row, CellOut& out) { out.Int(SpanOf(s, row).duration_ns); }},
                 {{"trace_start_ns", Type::kInteger, "ns, the rank's own clock", "Start, as the file has it.", ""},
                  [](const Source&, const Row& row, CellOut& out) { out.Int(row.start_ns); }}},
      .rows = [](const Source& source) { return std::span<const Row>(source.stage_places()); },
      .sorted_by = {0, 1}});
}

std::unique_ptr<Table> MakeStageFrontierTable() {
  using Row = FrontierPlace;
  return std::make_unique<RowTable<Row>>(RowTable<Row>::Parts{
      .name = "stage_frontier",
      .sentence = "What a stage adds to a round, the time between two meetings of the ranks: they add up to the job",
      .pass = "",
      .fields = {{{"step", Type::kInteger, "", "Step that the round ends in.", ""},
                  [](const Source&, const Row& row, CellOut& out) { out.Int(row.step); },
                  [](const Source&, const Row& row) { return std::optional(row.step); }},
                 {{"round", Type::kInteger, "", "Number of the round in the job, from 0.", ""},
                  [](const Source&, const Row& row, CellOut& out) { out.Int(row.round); },
                  [](const Source&, const Row& row) { return std::optional(row.round); }},
                 {{"stage", Type::kText, "", "The stage; one that adds nothing has no row.", ""},
                  [](const Source&, const Row& row, CellOut& out) { out.Static(StageName(row.stage)); }},
                 {{"increment_ns", Type::kInteger, "ns", "What it adds to the frontier (stages.md).", ""},
                  [](const Source&, const Row& row, CellOut& out) { out.Int(row.increment_ns); }},
                 {{"rank", Type::kInteger, "", "Who is at the frontier behind the stage.", ""},
                  [](const Source&, const Row& row, CellOut& out) { out.Int(row.rank); },
                  [](const Source&, const Row& row) { return std::optional<int64_t>(row.rank); }},
                 {{"ends_in_meeting", Type::kBoolean, "", "1: all ranks end a wait for a collective there.", ""},
                  [](const Source&, const Row& row, CellOut& out) { out.Bool(row.ends_in_meeting); }}},
      .rows = [](const Source& source) { return std::span<const Row>(source.frontier_places()); },
      .sorted_by = {0, 1}});
}

}  // namespace lockstep::query
