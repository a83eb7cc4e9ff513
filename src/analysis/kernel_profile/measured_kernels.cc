#include "analysis/kernel_profile/measured_kernels.h"

#include <algorithm>

#include "analysis/pass.h"
#include "analysis/table.h"

namespace lockstep::analysis {

KernelProfileTables ComputeKernelProfiles(const model::Run& run) {
  KernelProfileTables tables;
  tables.profiles = run.kernel_profiles;
  if (tables.profiles == nullptr) return tables;
  for (const model::KernelLaunch& launch : tables.profiles->launches) {
    tables.launches.push_back({&launch, BoundOf(launch)});
  }
  std::stable_sort(tables.launches.begin(), tables.launches.end(), [](const auto& a, const auto& b) {
    return a.launch->duration_ns.value_or(0) > b.launch->duration_ns.value_or(0);
  });
  for (const KernelLaunchRow& row : tables.launches) {
    for (const RooflinePoint& point : RooflineOf(*row.launch)) tables.rooflines.push_back({row.launch, point});
  }
  tables.sums = SumOverRanks(*tables.profiles);
  return tables;
}

namespace {

constexpr const char* kUnnamed = "the file's name does not say";
constexpr const char* kUnmeasured = "not in the table";

/// Which launch a row is about.
template <typename Row>
std::vector<RowColumn<Row>> LaunchColumns() {
  return {
      Field<&Row::launch, &model::KernelLaunch::file>("file", "", "Table that holds the launch."),
      Field<&Row::launch, &model::KernelLaunch::rank>("rank", "", "Rank in the file's name.", kUnnamed),
      Field<&Row::launch, &model::KernelLaunch::id>("id", "", "ncu's number of the launch, from 0."),
      Field<&Row::launch, &model::KernelLaunch::kernel>("kernel", "", "Name of the kernel."),
      Field<&Row::launch, &model::KernelLaunch::device>("device", "", "Device, or ncu's number of it.", kUnmeasured),
  };
}

std::vector<RowColumn<KernelLaunchRow>> LaunchTable() {
  using Row = KernelLaunchRow;
  std::vector<RowColumn<Row>> columns = LaunchColumns<Row>();
  const std::vector<RowColumn<Row>> own = {
      Field<&Row::launch, &model::KernelLaunch::compute_capability>("compute_capability", "", "Of the device.",
                                                                    kUnmeasured),
      Field<&Row::launch, &model::KernelLaunch::grid>("grid", "", "Blocks of the launch, in three dimensions.",
                                                      kUnmeasured),
      Field<&Row::launch, &model::KernelLaunch::block>("block", "", "Threads of a block.", kUnmeasured),
      Field<&Row::launch, &model::KernelLaunch::duration_ns>(
          "duration_ns", "ns", "At ncu's clocks and with cold caches: not the time in the job.", kUnmeasured),
      NamedField<&Row::bound, KernelBoundName>(
          "bound", "`compute`, `memory`, `balanced`, `latency`, or `unknown` where a throughput is absent."),
      Field<&Row::launch, &model::KernelLaunch::compute_ratio>(
          "compute_ratio", "0..1", "Throughput of the SMs, of what they sustain at most.", kUnmeasured),
      Field<&Row::launch, &model::KernelLaunch::memory_ratio>(
          "memory_ratio", "0..1", "Throughput of the memory system, likewise.", kUnmeasured),
      Field<&Row::launch, &model::KernelLaunch::dram_ratio>("dram_ratio", "0..1", "Of DRAM alone.", kUnmeasured),
      Field<&Row::launch, &model::KernelLaunch::occupancy_ratio>(
          "occupancy_ratio", "0..1", "Active warps, of the most that an SM holds.", kUnmeasured),
      Field<&Row::launch, &model::KernelLaunch::dram_bytes_per_s>("dram_bytes_per_s", "bytes/s",
                                                                  "Traffic to and from DRAM.", kUnmeasured),
      Field<&Row::launch, &model::KernelLaunch::dram_peak_bytes_per_s>("dram_peak_bytes_per_s", "bytes/s",
                                                                       "The most there could have been.", kUnmeasured),
      Field<&Row::launch, &model::KernelLaunch::measured_nothing>(
          "measured_nothing", "", "Every metric is 0: the counters were not to be had."),
  };
  columns.insert(columns.end(), own.begin(), own.end());
  return columns;
}

std::vector<RowColumn<KernelRooflineRow>> RooflineTable() {
  using Row = KernelRooflineRow;
  std::vector<RowColumn<Row>> columns = LaunchColumns<Row>();
  const std::vector<RowColumn<Row>> own = {
      {"precision", ColumnType::kText, "", "Kind of arithmetic: `fp64`, `fp32`, `fp16`, `tensor`.", "",
       [](const TableSource&, const Row& row) { return Cell(std::string(PrecisionName(row.point.precision))); }},
      Field<&Row::point, &RooflinePoint::flops_per_s>("flops_per_s", "FLOP/s", "Achieved."),
      Field<&Row::point, &RooflinePoint::peak_flops_per_s>("peak_flops_per_s", "FLOP/s", "The device's, at its clock."),
      Field<&Row::point, &RooflinePoint::flops_per_byte>("flops_per_byte", "FLOP/byte",
                                                         "Arithmetic intensity: of bytes to and from DRAM."),
      Field<&Row::point, &RooflinePoint::ridge_flops_per_byte>("ridge_flops_per_byte", "FLOP/byte",
                                                               "Where the device's ceilings meet."),
      Field<&Row::point, &RooflinePoint::roof_flops_per_s>("roof_flops_per_s", "FLOP/s",
                                                           "The ceiling over this launch."),
      Field<&Row::point, &RooflinePoint::roof_ratio>("roof_ratio", "0..1", "Achieved, of that ceiling."),
      Field<&Row::point, &RooflinePoint::approximate>(
          "approximate", "", "Operations of an instruction depend on the device: tensor cores."),
  };
  columns.insert(columns.end(), own.begin(), own.end());
  return columns;
}

std::vector<RowColumn<NameOverRanks>> SumTable() {
  using Row = NameOverRanks;
  constexpr const char* kOneRank = "fewer than two ranks have it";
  return {
      NamedField<&Row::kind, SummedKindName>("kind", "What is summed up: `kernel`, `api`, `memory`, `range`."),
      Field<&Row::name>("name", "", "Of the kernel, call, operation or range."),
      Field<&Row::count>("count", "count", "Calls, of all reports."),
      Field<&Row::total_ns>("total_ns", "ns", "Their time."),
      Field<&Row::min_ns>("min_ns", "ns", "The shortest."),
      Field<&Row::max_ns>("max_ns", "ns", "The longest."),
      Field<&Row::report_count>("report_count", "count", "Reports that have the name."),
      Field<&Row::imbalance>("imbalance", "", "Largest total of a rank over the mean of all ranks.", kOneRank),
      Field<&Row::most_rank>("most_rank", "", "Whose that is.", kOneRank),
  };
}

}  // namespace

Pass MeasuredKernelsPass() {
  return RunPass<KernelProfileTables>(
      {.question = "What bounds the kernels, where tables of Nsight Compute lie beside the traces?",
       .tables = {DeclareTable("kernel_launches", "kernel_launches",
                               "A launch that Nsight Compute measured, of the tables that lie beside the traces",
                               &KernelProfileTables::launches, LaunchTable()),
                  DeclareTable("kernel_rooflines", "kernel_rooflines",
                               "Such a launch under the roofline of one kind of arithmetic that it did",
                               &KernelProfileTables::rooflines, RooflineTable()),
                  DeclareTable("kernel_sums", "kernel_sums",
                               "A name that `nsys stats` sums times up for, over all reports beside the traces",
                               &KernelProfileTables::sums, SumTable())}},
      [](PassContext& context) { return ComputeKernelProfiles(context.run()); });
}

}  // namespace lockstep::analysis
