// The table of the pass "pipeline".
#include "analysis/analysis_result.h"
#include "analysis/parallelism/pipeline.h"
#include "report/declared_tables.h"

namespace lockstep::report {
namespace {

using analysis::AnalysisResult;
using analysis::PipelineRow;
using model::Run;
using Type = DeclaredType;

const std::vector<PipelineRow>& Stages(const AnalysisResult& result) { return result.Get<analysis::Pipelines>().rows; }

std::vector<RowColumn<PipelineRow>> StageColumns() {
  using Row = PipelineRow;
  return {
      RankColumn<Row>(),
      WindowColumn<Row>(),
      GroupColumn<Row>(),
      {"stage", Type::kInteger, "", "Place among the group's ranks, from 0.", "",
       [](const Run&, const Row& row) { return Cell(uint64_t{row.stage}); }},
      {"stage_count", Type::kInteger, "count", "Ranks of the group.", "",
       [](const Run&, const Row& row) { return Cell(uint64_t{row.stage_count}); }},
      {"send_count", Type::kInteger, "count", "Sends.", "",
       [](const Run&, const Row& row) { return Cell(row.send_count); }},
      {"receive_count", Type::kInteger, "count", "Receives.", "",
       [](const Run&, const Row& row) { return Cell(row.receive_count); }},
      {"bytes", Type::kInteger, "bytes", "Sum of their sizes.", "not recorded",
       [](const Run&, const Row& row) { return OptionalCell(row.bytes); }},
      {"microbatches_per_step", Type::kReal, "count",
       "Forward passes of this stage per step; of the trace without steps.", "peers not recorded",
       [](const Run&, const Row& row) { return OptionalCell(row.microbatches_per_step); }},
      {"in_flight_count", Type::kInteger, "count",
       "Most micro-batches at once whose forward pass is done and whose backward pass is not.", "peers not recorded",
       [](const Run&, const Row& row) { return OptionalCell(row.in_flight_count); }},
      {"schedule", Type::kText, "", "Of the group: `gpipe`, `1f1b`, `interleaved`, `unknown`.", "",
       [](const Run&, const Row& row) { return TextCell(analysis::PipelineScheduleName(row.schedule)); }},
      {"communication_ns", Type::kInteger, "ns", "Union of its sends and receives.", "",
       [](const Run&, const Row& row) { return Cell(row.communication_ns); }},
      {"bubble_ns", Type::kInteger, "ns", "Part of that in which nothing is computed.", "",
       [](const Run&, const Row& row) { return Cell(row.bubble_ns); }},
      {"bubble_ratio", Type::kReal, "0..1", "`bubble_ns` of the rank's span.", "the span is 0",
       [](const Run&, const Row& row) { return OptionalCell(row.bubble_ratio); }},
  };
}

}  // namespace

void DeclarePipelineTables(std::vector<DeclaredTable>* tables) {
  tables->push_back(DeclareTable<PipelineRow>("pipeline", "pipeline", "A rank's stage of a pipeline group", "pipeline",
                                              Stages, StageColumns()));
}

}  // namespace lockstep::report
