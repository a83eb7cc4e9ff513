// The tables of the pass "measured_kernels".
#include "analysis/kernel_profile/kernel_profile_tables.h"

#include "analysis/analysis_result.h"
#include "report/declared_tables.h"

namespace lockstep::report {
namespace {

using analysis::AnalysisResult;
using analysis::KernelLaunchRow;
using analysis::KernelRooflineRow;
using analysis::NameOverRanks;
using model::Run;
using Type = DeclaredType;

constexpr const char* kUnnamed = "the file's name does not say";
constexpr const char* kUnmeasured = "not in the table";

const std::vector<KernelLaunchRow>& Launches(const AnalysisResult& result) {
  return result.Get<analysis::KernelProfileTables>().launches;
}
const std::vector<KernelRooflineRow>& Rooflines(const AnalysisResult& result) {
  return result.Get<analysis::KernelProfileTables>().rooflines;
}
const std::vector<NameOverRanks>& Sums(const AnalysisResult& result) {
  return result.Get<analysis::KernelProfileTables>().sums;
}

/// Which launch a row is about.
template <typename Row>
std::vector<RowColumn<Row>> LaunchColumns() {
  return {
      {"file", Type::kText, "", "Table that holds the launch.", "",
       [](const Run&, const Row& row) { return TextCell(row.launch->file); }},
      {"rank", Type::kInteger, "", "Rank in the file's name.", kUnnamed,
       [](const Run&, const Row& row) { return OptionalCell(row.launch->rank); }},
      {"id", Type::kInteger, "", "ncu's number of the launch, from 0.", "",
       [](const Run&, const Row& row) { return Cell(static_cast<int64_t>(row.launch->id)); }},
      {"kernel", Type::kText, "", "Name of the kernel.", "",
       [](const Run&, const Row& row) { return TextCell(row.launch->kernel); }},
      {"device", Type::kText, "", "Device, or ncu's number of it.", kUnmeasured,
       [](const Run&, const Row& row) { return TextOrNullCell(row.launch->device); }},
  };
}

std::vector<RowColumn<KernelLaunchRow>> LaunchTable() {
  using Row = KernelLaunchRow;
  std::vector<RowColumn<Row>> columns = LaunchColumns<Row>();
  const std::vector<RowColumn<Row>> own = {
      {"compute_capability", Type::kText, "", "Of the device.", kUnmeasured,
       [](const Run&, const Row& row) { return TextOrNullCell(row.launch->compute_capability); }},
      {"grid", Type::kText, "", "Blocks of the launch, in three dimensions.", kUnmeasured,
       [](const Run&, const Row& row) { return TextOrNullCell(row.launch->grid); }},
      {"block", Type::kText, "", "Threads of a block.", kUnmeasured,
       [](const Run&, const Row& row) { return TextOrNullCell(row.launch->block); }},
      {"duration_ns", Type::kInteger, "ns", "At ncu's clocks and with cold caches: not the time in the job.",
       kUnmeasured, [](const Run&, const Row& row) { return OptionalCell(row.launch->duration_ns); }},
      {"bound", Type::kText, "",
       "`compute`, `memory`, `balanced`, `latency`, or `unknown` where a throughput is absent.", "",
       [](const Run&, const Row& row) { return TextCell(analysis::KernelBoundName(row.bound)); }},
      {"compute_ratio", Type::kReal, "0..1", "Throughput of the SMs, of what they sustain at most.", kUnmeasured,
       [](const Run&, const Row& row) { return OptionalCell(row.launch->compute_ratio); }},
      {"memory_ratio", Type::kReal, "0..1", "Throughput of the memory system, likewise.", kUnmeasured,
       [](const Run&, const Row& row) { return OptionalCell(row.launch->memory_ratio); }},
      {"dram_ratio", Type::kReal, "0..1", "Of DRAM alone.", kUnmeasured,
       [](const Run&, const Row& row) { return OptionalCell(row.launch->dram_ratio); }},
      {"occupancy_ratio", Type::kReal, "0..1", "Active warps, of the most that an SM holds.", kUnmeasured,
       [](const Run&, const Row& row) { return OptionalCell(row.launch->occupancy_ratio); }},
      {"dram_bytes_per_s", Type::kReal, "bytes/s", "Traffic to and from DRAM.", kUnmeasured,
       [](const Run&, const Row& row) { return OptionalCell(row.launch->dram_bytes_per_s); }},
      {"dram_peak_bytes_per_s", Type::kReal, "bytes/s", "The most there could have been.", kUnmeasured,
       [](const Run&, const Row& row) { return OptionalCell(row.launch->dram_peak_bytes_per_s); }},
      {"measured_nothing", Type::kBoolean, "", "Every metric is 0: the counters were not to be had.", "",
       [](const Run&, const Row& row) { return Cell(row.launch->measured_nothing); }},
  };
  columns.insert(columns.end(), own.begin(), own.end());
  return columns;
}

std::vector<RowColumn<KernelRooflineRow>> RooflineTable() {
  using Row = KernelRooflineRow;
  std::vector<RowColumn<Row>> columns = LaunchColumns<Row>();
  const std::vector<RowColumn<Row>> own = {
      {"precision", Type::kText, "", "Kind of arithmetic: `fp64`, `fp32`, `fp16`, `tensor`.", "",
       [](const Run&, const Row& row) { return TextCell(analysis::PrecisionName(row.point.precision)); }},
      {"flops_per_s", Type::kReal, "FLOP/s", "Achieved.", "",
       [](const Run&, const Row& row) { return Cell(row.point.flops_per_s); }},
      {"peak_flops_per_s", Type::kReal, "FLOP/s", "The device's, at its clock.", "",
       [](const Run&, const Row& row) { return Cell(row.point.peak_flops_per_s); }},
      {"flops_per_byte", Type::kReal, "FLOP/byte", "Arithmetic intensity: of bytes to and from DRAM.", "",
       [](const Run&, const Row& row) { return Cell(row.point.flops_per_byte); }},
      {"ridge_flops_per_byte", Type::kReal, "FLOP/byte", "Where the device's ceilings meet.", "",
       [](const Run&, const Row& row) { return Cell(row.point.ridge_flops_per_byte); }},
      {"roof_flops_per_s", Type::kReal, "FLOP/s", "The ceiling over this launch.", "",
       [](const Run&, const Row& row) { return Cell(row.point.roof_flops_per_s); }},
      {"roof_ratio", Type::kReal, "0..1", "Achieved, of that ceiling.", "",
       [](const Run&, const Row& row) { return Cell(row.point.roof_ratio); }},
      {"approximate", Type::kBoolean, "", "Operations of an instruction depend on the device: tensor cores.", "",
       [](const Run&, const Row& row) { return Cell(row.point.approximate); }},
  };
  columns.insert(columns.end(), own.begin(), own.end());
  return columns;
}

std::vector<RowColumn<NameOverRanks>> SumTable() {
  using Row = NameOverRanks;
  constexpr const char* kOneRank = "fewer than two ranks have it";
  return {
      {"kind", Type::kText, "", "What is summed up: `kernel`, `api`, `memory`, `range`.", "",
       [](const Run&, const Row& row) { return TextCell(analysis::SummedKindName(row.kind)); }},
      {"name", Type::kText, "", "Of the kernel, call, operation or range.", "",
       [](const Run&, const Row& row) { return TextCell(row.name); }},
      {"count", Type::kInteger, "count", "Calls, of all reports.", "",
       [](const Run&, const Row& row) { return Cell(static_cast<int64_t>(row.count)); }},
      {"total_ns", Type::kInteger, "ns", "Their time.", "",
       [](const Run&, const Row& row) { return Cell(row.total_ns); }},
      {"min_ns", Type::kInteger, "ns", "The shortest.", "",
       [](const Run&, const Row& row) { return Cell(row.min_ns); }},
      {"max_ns", Type::kInteger, "ns", "The longest.", "", [](const Run&, const Row& row) { return Cell(row.max_ns); }},
      {"report_count", Type::kInteger, "count", "Reports that have the name.", "",
       [](const Run&, const Row& row) { return Cell(static_cast<int64_t>(row.report_count)); }},
      {"imbalance", Type::kReal, "", "Largest total of a rank over the mean of all ranks.", kOneRank,
       [](const Run&, const Row& row) { return OptionalCell(row.imbalance); }},
      {"most_rank", Type::kInteger, "", "Whose that is.", kOneRank,
       [](const Run&, const Row& row) { return OptionalCell(row.most_rank); }},
  };
}

}  // namespace

void DeclareKernelProfileTables(std::vector<DeclaredTable>* tables) {
  tables->push_back(
      DeclareTable<KernelLaunchRow>("kernel_launches", "kernel_launches",
                                    "A launch that Nsight Compute measured, of the tables that lie beside the traces",
                                    "measured_kernels", Launches, LaunchTable()));
  tables->push_back(DeclareTable<KernelRooflineRow>(
      "kernel_rooflines", "kernel_rooflines", "Such a launch under the roofline of one kind of arithmetic that it did",
      "measured_kernels", Rooflines, RooflineTable()));
  tables->push_back(DeclareTable<NameOverRanks>(
      "kernel_sums", "kernel_sums", "A name that `nsys stats` sums times up for, over all reports beside the traces",
      "measured_kernels", Sums, SumTable()));
}

}  // namespace lockstep::report
