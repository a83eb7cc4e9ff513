// The tables of the pass "flops".
#include "analysis/analysis_result.h"
#include "analysis/parallelism/flops.h"
#include "report/declared_tables.h"

namespace lockstep::report {
namespace {

using analysis::AnalysisResult;
using analysis::FlopsRankRow;
using analysis::FlopsRow;
using model::Run;
using Type = DeclaredType;

const std::vector<FlopsRankRow>& FlopsRanks(const AnalysisResult& result) {
  return result.Get<analysis::Flops>().ranks;
}
const std::vector<FlopsRow>& Operators(const AnalysisResult& result) { return result.Get<analysis::Flops>().operators; }

std::vector<RowColumn<FlopsRankRow>> FlopsColumns() {
  using Row = FlopsRankRow;
  return {
      RankColumn<Row>(),
      WindowColumn<Row>(),
      {"device", Type::kText, "", "Name of its device.", "not recorded",
       [](const Run&, const Row& row) { return TextOrNullCell(row.device); }},
      {"call_count", Type::kInteger, "count", "Calls of matrix operators in the span with known work.", "",
       [](const Run&, const Row& row) { return Cell(row.call_count); }},
      {"unknown_count", Type::kInteger, "count", "Calls in the span whose shapes do not tell their work.", "",
       [](const Run&, const Row& row) { return Cell(row.unknown_count); }},
      {"flops", Type::kInteger, "FLOP", "Sum over those calls; recomputation counts again.", "",
       [](const Run&, const Row& row) { return Cell(row.flops); }},
      {"time_ns", Type::kInteger, "ns", "Device time of the rank's matrix operators; CPU time without a device.", "",
       [](const Run&, const Row& row) { return Cell(row.time_ns); }},
      {"span_ns", Type::kInteger, "ns", "First step's start to last step's end; without steps, first to last event.",
       "", [](const Run&, const Row& row) { return Cell(row.span_ns); }},
      {"precision", Type::kText, "", "That of most FLOPs: `bf16`, `fp16`, `tf32`, `fp32`, `other`.", "",
       [](const Run&, const Row& row) { return TextCell(analysis::PrecisionName(row.precision)); }},
      {"flops_per_s", Type::kReal, "FLOP/s", "`flops` / `span_ns`.", "no such call",
       [](const Run&, const Row& row) { return OptionalCell(row.flops_per_s); }},
      {"peak_flops_per_s", Type::kReal, "FLOP/s", "The device's dense peak at that precision.",
       "device not in the table of peaks",
       [](const Run&, const Row& row) { return OptionalCell(row.peak_flops_per_s); }},
      {"peak_source", Type::kText, "", "Document that states the peak.", "device not in the table of peaks",
       [](const Run&, const Row& row) { return TextOrNullCell(row.peak_source); }},
      {"mfu", Type::kReal, "0..1",
       "`flops_per_s` / `peak_flops_per_s`: model FLOPs utilisation, recomputation included.",
       "no such call, or no peak", [](const Run&, const Row& row) { return OptionalCell(row.mfu); }},
  };
}

std::vector<RowColumn<FlopsRow>> OperatorColumns() {
  using Row = FlopsRow;
  return {
      RankColumn<Row>(),
      WindowColumn<Row>(),
      {"name", Type::kText, "", "Operator.", "", [](const Run&, const Row& row) { return TextCell(row.name); }},
      {"dims", Type::kText, "", "Shapes of its arguments, as recorded.", "",
       [](const Run&, const Row& row) { return TextCell(row.dims); }},
      {"dtype", Type::kText, "", "Type of the factors, as recorded.", "not recorded",
       [](const Run&, const Row& row) { return TextOrNullCell(row.type); }},
      {"precision", Type::kText, "", "`bf16`, `fp16`, `tf32` (a float product whose kernel says so), `fp32`, `other`.",
       "", [](const Run&, const Row& row) { return TextCell(analysis::PrecisionName(row.precision)); }},
      {"call_count", Type::kInteger, "count", "Calls with these shapes.", "",
       [](const Run&, const Row& row) { return Cell(row.call_count); }},
      {"timed_count", Type::kInteger, "count", "Calls with device time (CPU time without a device).", "",
       [](const Run&, const Row& row) { return Cell(row.timed_count); }},
      {"flops", Type::kInteger, "FLOP", "Work of one call.", "",
       [](const Run&, const Row& row) { return Cell(row.flops); }},
      {"bytes", Type::kInteger, "bytes", "Operands and result of one call, each once.", "",
       [](const Run&, const Row& row) { return Cell(row.bytes); }},
      {"intensity", Type::kReal, "FLOP/byte", "`flops` / `bytes`.", "",
       [](const Run&, const Row& row) { return Cell(row.intensity); }},
      {"time_ns", Type::kInteger, "ns", "Sum of the device events launched in the calls.", "",
       [](const Run&, const Row& row) { return Cell(row.time_ns); }},
      {"mean_flops_per_s", Type::kReal, "FLOP/s", "Mean over calls of work / time.", "no call has a time",
       [](const Run&, const Row& row) { return OptionalCell(row.mean_flops_per_s); }},
      {"median_flops_per_s", Type::kReal, "FLOP/s", "Median of the same.", "no call has a time",
       [](const Run&, const Row& row) { return OptionalCell(row.median_flops_per_s); }},
      {"mean_bytes_per_s", Type::kReal, "bytes/s", "Mean over calls of `bytes` / time.", "no call has a time",
       [](const Run&, const Row& row) { return OptionalCell(row.mean_bytes_per_s); }},
      {"compute_bound", Type::kBoolean, "", "Intensity is at or above peak FLOP/s / memory bandwidth.",
       "device not in the table of peaks", [](const Run&, const Row& row) { return OptionalCell(row.compute_bound); }},
      {"roof_ratio", Type::kReal, "0..1",
       "`mean_flops_per_s` over the roof: the lesser of the peak and intensity x bandwidth.",
       "device not in the table of peaks, or no time",
       [](const Run&, const Row& row) { return OptionalCell(row.roof_ratio); }},
  };
}

}  // namespace

void DeclareFlopsTables(std::vector<DeclaredTable>* tables) {
  tables->push_back(DeclareTable<FlopsRankRow>("flops", "flops", "Matrix operators of a rank and its use of the device",
                                               "flops", FlopsRanks, FlopsColumns()));
  tables->push_back(DeclareTable<FlopsRow>("flops_by_operator", "flops_by_operator",
                                           "Calls of a matrix operator with one set of shapes, on the roofline",
                                           "flops", Operators, OperatorColumns()));
}

}  // namespace lockstep::report
