// The tables of the passes "ddp" and "fsdp".
#include "analysis/analysis_result.h"
#include "analysis/parallelism/ddp.h"
#include "analysis/parallelism/fsdp.h"
#include "report/declared_tables.h"

namespace lockstep::report {
namespace {

using analysis::AnalysisResult;
using analysis::DdpBucketRow;
using analysis::DdpRow;
using analysis::FsdpRow;
using model::Run;
using Type = DeclaredType;

const std::vector<DdpRow>& DdpRanks(const AnalysisResult& result) { return result.Get<analysis::Ddp>().ranks; }
const std::vector<DdpBucketRow>& Buckets(const AnalysisResult& result) { return result.Get<analysis::Ddp>().buckets; }
const std::vector<FsdpRow>& Fsdp(const AnalysisResult& result) { return result.Get<analysis::Fsdp>().rows; }

std::vector<RowColumn<DdpRow>> DdpColumns() {
  using Row = DdpRow;
  return {
      RankColumn<Row>(),
      WindowColumn<Row>(),
      GroupColumn<Row>(),
      {"pass_count", Type::kInteger, "count", "Backward passes that sent gradients.", "",
       [](const Run&, const Row& row) { return Cell(row.pass_count); }},
      {"buckets_per_pass", Type::kReal, "count", "Mean number of all_reduces issued in one of them.", "",
       [](const Run&, const Row& row) { return Cell(row.buckets_per_pass); }},
      {"bytes_per_pass", Type::kInteger, "bytes", "Mean of their sizes' sum.", "not recorded",
       [](const Run&, const Row& row) { return OptionalCell(row.bytes_per_pass); }},
      {"communication_ns", Type::kInteger, "ns", "Sum of their durations; waiting is in it.", "",
       [](const Run&, const Row& row) { return Cell(row.communication_ns); }},
      {"exposed_ns", Type::kInteger, "ns", "Part of that in which the rank computes nothing.", "",
       [](const Run&, const Row& row) { return Cell(row.exposed_ns); }},
      {"tail_ns", Type::kInteger, "ns",
       "Sum over passes: end of the device's backward pass to the end of the last bucket.",
       "no kernel of a backward pass is known", [](const Run&, const Row& row) { return OptionalCell(row.tail_ns); }},
  };
}

std::vector<RowColumn<DdpBucketRow>> BucketColumns() {
  using Row = DdpBucketRow;
  return {
      GroupColumn<Row>(),
      {"bucket", Type::kInteger, "", "Place in the backward pass, from 0, in order of issue.", "",
       [](const Run&, const Row& row) { return Cell(uint64_t{row.bucket}); }},
      {"call_count", Type::kInteger, "count", "Calls, all ranks and passes.", "",
       [](const Run&, const Row& row) { return Cell(row.call_count); }},
      {"bytes", Type::kInteger, "bytes", "Size, of the first of these calls.", "not recorded",
       [](const Run&, const Row& row) { return OptionalCell(row.bytes); }},
      {"mean_duration_ns", Type::kInteger, "ns", "Mean duration; waiting is in it.", "",
       [](const Run&, const Row& row) { return Cell(row.mean_duration_ns); }},
      {"issue_ratio", Type::kReal, "0..1",
       "Where in the backward pass the CPU issued it: 0 at its begin, 1 at its end.", "",
       [](const Run&, const Row& row) { return Cell(row.issue_ratio); }},
      {"mean_overlapped_ns", Type::kInteger, "ns", "Mean part inside the device's backward pass.",
       "no kernel of a backward pass is known",
       [](const Run&, const Row& row) { return OptionalCell(row.mean_overlapped_ns); }},
      {"mean_exposed_ns", Type::kInteger, "ns", "Mean part in which the rank computes nothing.", "",
       [](const Run&, const Row& row) { return Cell(row.mean_exposed_ns); }},
  };
}

std::vector<RowColumn<FsdpRow>> FsdpColumns() {
  using Row = FsdpRow;
  return {
      RankColumn<Row>(),
      WindowColumn<Row>(),
      GroupColumn<Row>(),
      {"step_count", Type::kInteger, "count", "Steps that the figures are sums of; 0 without steps.", "",
       [](const Run&, const Row& row) { return Cell(row.step_count); }},
      {"gather_count", Type::kInteger, "count", "all_gathers.", "",
       [](const Run&, const Row& row) { return Cell(row.gather_count); }},
      {"gather_backward_count", Type::kInteger, "count", "Those issued in a backward pass.", "",
       [](const Run&, const Row& row) { return Cell(row.gather_backward_count); }},
      {"gather_bytes", Type::kInteger, "bytes", "Sum of their sizes.", "not recorded",
       [](const Run&, const Row& row) { return OptionalCell(row.gather_bytes); }},
      {"gather_ns", Type::kInteger, "ns", "Sum of their durations; waiting is in it.", "",
       [](const Run&, const Row& row) { return Cell(row.gather_ns); }},
      {"gather_exposed_ns", Type::kInteger, "ns", "Part of that in which the rank computes nothing.", "",
       [](const Run&, const Row& row) { return Cell(row.gather_exposed_ns); }},
      {"prefetched_count", Type::kInteger, "count", "Gathers with computation beside at least half of them.", "",
       [](const Run&, const Row& row) { return Cell(row.prefetched_count); }},
      {"scatter_count", Type::kInteger, "count", "reduce_scatters.", "",
       [](const Run&, const Row& row) { return Cell(row.scatter_count); }},
      {"scatter_bytes", Type::kInteger, "bytes", "Sum of their sizes.", "not recorded",
       [](const Run&, const Row& row) { return OptionalCell(row.scatter_bytes); }},
      {"scatter_ns", Type::kInteger, "ns", "Sum of their durations; waiting is in it.", "",
       [](const Run&, const Row& row) { return Cell(row.scatter_ns); }},
      {"scatter_exposed_ns", Type::kInteger, "ns", "Part of that in which the rank computes nothing.", "",
       [](const Run&, const Row& row) { return Cell(row.scatter_exposed_ns); }},
      {"resharding", Type::kText, "",
       "`after_forward`: weights are gathered in both passes; `kept`: once; `unknown`: the passes are not told apart.",
       "", [](const Run&, const Row& row) { return TextCell(analysis::ReshardingName(row.resharding)); }},
      {"peak_allocated_bytes", Type::kInteger, "bytes", "Most that the device's allocator had given out.",
       "no memory events", [](const Run&, const Row& row) { return OptionalCell(row.peak_allocated_bytes); }},
      {"peak_reserved_bytes", Type::kInteger, "bytes", "Most that it had taken from the device.", "no memory events",
       [](const Run&, const Row& row) { return OptionalCell(row.peak_reserved_bytes); }},
  };
}

}  // namespace

void DeclareDdpTables(std::vector<DeclaredTable>* tables) {
  tables->push_back(
      DeclareTable<DdpRow>("ddp", "ddp", "Gradients of a data group on one rank", "ddp", DdpRanks, DdpColumns()));
  tables->push_back(DeclareTable<DdpBucketRow>("ddp_buckets", "ddp_buckets",
                                               "A gradient bucket, by its place in the backward pass", "ddp", Buckets,
                                               BucketColumns()));
  tables->push_back(DeclareTable<FsdpRow>("fsdp", "fsdp", "Sharded weights and gradients of a data group on one rank",
                                          "fsdp", Fsdp, FsdpColumns()));
}

}  // namespace lockstep::report
