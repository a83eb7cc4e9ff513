// The tables of the pass "regions".
#include "analysis/analysis_result.h"
#include "analysis/regions/regions.h"
#include "report/declared_tables.h"

namespace lockstep::report {
namespace {

using analysis::AnalysisResult;
using analysis::RegionBalanceRow;
using analysis::RegionRow;
using model::Run;
using Type = DeclaredType;

const std::vector<RegionRow>& Regions(const AnalysisResult& result) { return result.Get<analysis::Regions>().rows; }
const std::vector<RegionBalanceRow>& RegionBalances(const AnalysisResult& result) {
  return result.Get<analysis::Regions>().balance;
}

std::vector<RowColumn<RegionRow>> RegionColumns() {
  using Row = RegionRow;
  constexpr const char* kNoDevice = "no device events";
  return {
      RankColumn<Row>(),
      WindowColumn<Row>(),
      {"name", Type::kText, "", "Of the range; `step 12` is `step *`.", "",
       [](const Run&, const Row& row) { return TextCell(row.name); }},
      {"count", Type::kInteger, "count", "Ranges; of one inside another of its name the outer one.", "",
       [](const Run&, const Row& row) { return Cell(row.count); }},
      {"total_ns", Type::kInteger, "ns", "Sum of their times on the CPU.", "",
       [](const Run&, const Row& row) { return Cell(row.total_ns); }},
      {"min_ns", Type::kInteger, "ns", "The shortest.", "",
       [](const Run&, const Row& row) { return Cell(row.min_ns); }},
      {"median_ns", Type::kInteger, "ns", "Median.", "",
       [](const Run&, const Row& row) { return Cell(row.median_ns); }},
      {"p95_ns", Type::kInteger, "ns", "95th percentile.", "",
       [](const Run&, const Row& row) { return Cell(row.p95_ns); }},
      {"max_ns", Type::kInteger, "ns", "The longest.", "", [](const Run&, const Row& row) { return Cell(row.max_ns); }},
      {"own_ns", Type::kInteger, "ns", "Part of `total_ns` in which no collective of a CPU backend is under way.",
       "the rank has device events", [](const Run&, const Row& row) { return OptionalCell(row.own_ns); }},
      {"pace_ns", Type::kInteger, "ns", "Median time from one's start to the next one's.", "there is only one",
       [](const Run&, const Row& row) { return OptionalCell(row.pace_ns); }},
      {"device_event_count", Type::kInteger, "count", "Device events launched inside.", "",
       [](const Run&, const Row& row) { return Cell(row.device_event_count); }},
      {"device_ns", Type::kInteger, "ns", "Sum of their times, over streams.", kNoDevice,
       [](const Run&, const Row& row) { return OptionalCell(row.device_ns); }},
      {"device_communication_ns", Type::kInteger, "ns", "Part of `device_ns` in communication kernels.", kNoDevice,
       [](const Run&, const Row& row) { return OptionalCell(row.device_communication_ns); }},
      {"projected_ns", Type::kInteger, "ns",
       "Sum of the times from the first start to the last end of a range's device events.", kNoDevice,
       [](const Run&, const Row& row) { return OptionalCell(row.projected_ns); }},
  };
}

std::vector<RowColumn<RegionBalanceRow>> RegionBalanceColumns() {
  using Row = RegionBalanceRow;
  constexpr const char* kDevices = "the ranks have device events";
  constexpr const char* kNoDevice = "no device events";
  constexpr const char* kNoOwn = "no device events but communication";
  return {
      {"name", Type::kText, "", "Of the range.", "", [](const Run&, const Row& row) { return TextCell(row.name); }},
      {"rank_count", Type::kInteger, "count", "Ranks that have it.", "",
       [](const Run&, const Row& row) { return Cell(row.rank_count); }},
      {"count", Type::kInteger, "count", "Ranges on all of them.", "",
       [](const Run&, const Row& row) { return Cell(row.count); }},
      {"mean_total_ns", Type::kInteger, "ns", "Mean of the ranks' sums on the CPU.", "",
       [](const Run&, const Row& row) { return Cell(row.mean_total_ns); }},
      {"most_total_rank", Type::kInteger, "", "Rank with the largest sum.", "",
       [](const Run& run, const Row& row) { return RankCell(run, row.most_total_rank_index); }},
      {"total_imbalance", Type::kReal, "", "Its sum over the mean.", "",
       [](const Run&, const Row& row) { return Cell(row.total_imbalance); }},
      {"mean_own_ns", Type::kInteger, "ns", "Mean of the ranks' `own_ns`.", kDevices,
       [](const Run&, const Row& row) { return OptionalCell(row.mean_own_ns); }},
      {"most_own_rank", Type::kInteger, "", "Rank with the largest `own_ns`.", kDevices,
       [](const Run& run, const Row& row) { return RankCell(run, row.most_own_rank_index); }},
      {"own_imbalance", Type::kReal, "", "Its `own_ns` over the mean.", kDevices,
       [](const Run&, const Row& row) { return OptionalCell(row.own_imbalance); }},
      {"mean_device_ns", Type::kInteger, "ns", "Mean of the ranks' `device_ns`.", kNoDevice,
       [](const Run&, const Row& row) { return OptionalCell(row.mean_device_ns); }},
      {"most_device_rank", Type::kInteger, "", "Rank with the most device time without communication.", kNoOwn,
       [](const Run& run, const Row& row) { return RankCell(run, row.most_device_rank_index); }},
      {"device_imbalance", Type::kReal, "", "Its device time without communication over the mean of that.", kNoOwn,
       [](const Run&, const Row& row) { return OptionalCell(row.device_imbalance); }},
  };
}

}  // namespace

void DeclareRegionTables(std::vector<DeclaredTable>* tables) {
  tables->push_back(DeclareTable<RegionRow>(
      "regions", "regions", "The ranges of one name that one rank's program marks (record_function, NVTX)", "regions",
      Regions, RegionColumns()));
  tables->push_back(DeclareTable<RegionBalanceRow>("region_balance", "region_balance",
                                                   "One such name over the ranks of the first window", "regions",
                                                   RegionBalances, RegionBalanceColumns()));
}

}  // namespace lockstep::report
