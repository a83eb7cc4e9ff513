// The tables of the pass "inference".
#include "analysis/analysis_result.h"
#include "analysis/parallelism/inference.h"
#include "report/declared_tables.h"

namespace lockstep::report {
namespace {

using analysis::AnalysisResult;
using analysis::InferenceRequestRow;
using analysis::InferenceRow;
using model::Run;
using Type = DeclaredType;

const std::vector<InferenceRow>& Phases(const AnalysisResult& result) { return result.Get<analysis::Inference>().rows; }
const std::vector<InferenceRequestRow>& Requests(const AnalysisResult& result) {
  return result.Get<analysis::Inference>().requests;
}

std::vector<RowColumn<InferenceRow>> PhaseColumns() {
  using Row = InferenceRow;
  return {
      RankColumn<Row>(),
      WindowColumn<Row>(),
      {"engine", Type::kText, "", "Whose names they are: `vllm`, `sglang`, `tensorrt_llm`, `plain`.", "",
       [](const Run&, const Row& row) { return TextCell(analysis::InferenceEngineName(row.engine)); }},
      {"phase", Type::kText, "",
       "`prefill`: prompts are read; `decode`: tokens are generated; `mixed`: both in one batch, or the name does not "
       "tell.",
       "", [](const Run&, const Row& row) { return TextCell(analysis::InferencePhaseName(row.phase)); }},
      {"phase_count", Type::kInteger, "count", "Marked ranges.", "",
       [](const Run&, const Row& row) { return Cell(row.phase_count); }},
      {"total_ns", Type::kInteger, "ns", "Sum of their times, to the end of the device work launched in them.", "",
       [](const Run&, const Row& row) { return Cell(row.total_ns); }},
      {"median_ns", Type::kInteger, "ns", "Median of their times.", "",
       [](const Run&, const Row& row) { return Cell(row.duration.median_ns); }},
      {"p95_ns", Type::kInteger, "ns", "95th percentile of their times.", "",
       [](const Run&, const Row& row) { return Cell(row.duration.p95_ns); }},
      {"p99_ns", Type::kInteger, "ns", "99th percentile of their times.", "",
       [](const Run&, const Row& row) { return Cell(row.duration.p99_ns); }},
      {"mean_request_count", Type::kReal, "count", "Mean batch size: requests in a phase.", "a name does not say",
       [](const Run&, const Row& row) { return OptionalCell(row.mean_request_count); }},
      {"token_count", Type::kInteger, "count", "Tokens of prompts read and tokens generated.", "a name does not say",
       [](const Run&, const Row& row) { return OptionalCell(row.token_count); }},
      {"tokens_per_s", Type::kReal, "1/s", "`token_count` / `total_ns`.", "`token_count` is null, or the time is 0",
       [](const Run&, const Row& row) { return OptionalCell(row.tokens_per_s); }},
      {"busy_ns", Type::kInteger, "ns", "Part of `total_ns` in which a device works.", "no device events",
       [](const Run&, const Row& row) { return OptionalCell(row.busy_ns); }},
      {"busy_ratio", Type::kReal, "0..1", "`busy_ns` / `total_ns`.", "no device events, or the time is 0",
       [](const Run&, const Row& row) { return OptionalCell(row.busy_ratio); }},
  };
}

Cell Latency(const InferenceRequestRow& row, int64_t analysis::DurationQuantiles::*quantile) {
  if (row.latency_count == 0) return std::monostate{};
  return Cell(row.latency.*quantile);
}

Cell FirstToken(const InferenceRequestRow& row, int64_t analysis::DurationQuantiles::*quantile) {
  if (!row.first_token) return std::monostate{};
  return Cell(*row.first_token.*quantile);
}

std::vector<RowColumn<InferenceRequestRow>> RequestColumns() {
  using Row = InferenceRequestRow;
  using Quantiles = analysis::DurationQuantiles;
  return {
      RankColumn<Row>(),
      WindowColumn<Row>(),
      {"kind", Type::kText, "", "What the program calls them.", "ranges mark them",
       [](const Run& run, const Row& row) {
         return row.recorded ? TextCell(run.names[row.recorded->kind]) : Cell(std::monostate{});
       }},
      {"request_count", Type::kInteger, "count", "Marked requests.", "",
       [](const Run&, const Row& row) { return Cell(row.request_count); }},
      {"failed_count", Type::kInteger, "count", "Those that failed.", "ranges mark them",
       [](const Run&, const Row& row) {
         return row.recorded ? Cell(row.recorded->failed_count) : Cell(std::monostate{});
       }},
      {"unfinished_count", Type::kInteger, "count", "Those that were under way when the recording ended.",
       "ranges mark them",
       [](const Run&, const Row& row) {
         return row.recorded ? Cell(row.recorded->unfinished_count) : Cell(std::monostate{});
       }},
      {"output_count", Type::kInteger, "count", "Tokens, or what the program counts, of all of them.",
       "ranges mark them",
       [](const Run&, const Row& row) {
         return row.recorded ? Cell(row.recorded->output_count) : Cell(std::monostate{});
       }},
      {"median_ns", Type::kInteger, "ns", "Median of the latencies of those that ended and did not fail.",
       "there is none", [](const Run&, const Row& row) { return Latency(row, &Quantiles::median_ns); }},
      {"p95_ns", Type::kInteger, "ns", "95th percentile of these latencies.", "there is none",
       [](const Run&, const Row& row) { return Latency(row, &Quantiles::p95_ns); }},
      {"p99_ns", Type::kInteger, "ns", "99th percentile of these latencies.", "there is none",
       [](const Run&, const Row& row) { return Latency(row, &Quantiles::p99_ns); }},
      {"first_token_count", Type::kInteger, "count",
       "Requests with a marked prefill inside, or an output that the program recorded.", "",
       [](const Run&, const Row& row) { return Cell(row.first_token_count); }},
      {"first_token_median_ns", Type::kInteger, "ns",
       "Median of the times from their start to the end of the prefill, or the first output.", "no request has one",
       [](const Run&, const Row& row) { return FirstToken(row, &Quantiles::median_ns); }},
      {"first_token_p95_ns", Type::kInteger, "ns", "95th percentile of these times.", "no request has one",
       [](const Run&, const Row& row) { return FirstToken(row, &Quantiles::p95_ns); }},
      {"first_token_p99_ns", Type::kInteger, "ns", "99th percentile of these times.", "no request has one",
       [](const Run&, const Row& row) { return FirstToken(row, &Quantiles::p99_ns); }},
  };
}

}  // namespace

void DeclareInferenceTables(std::vector<DeclaredTable>* tables) {
  tables->push_back(DeclareTable<InferenceRow>("inference", "inference",
                                               "Marked phases of a model that generates text, of one rank and kind",
                                               "inference", Phases, PhaseColumns()));
  tables->push_back(DeclareTable<InferenceRequestRow>("inference_requests", "inference_requests",
                                                      "The requests that a rank marks, by kind", "inference", Requests,
                                                      RequestColumns()));
}

}  // namespace lockstep::report
