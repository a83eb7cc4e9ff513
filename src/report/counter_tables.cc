// The tables of the pass "counters".
#include "analysis/analysis_result.h"
#include "analysis/counters/counters.h"
#include "report/declared_tables.h"

namespace lockstep::report {
namespace {

using analysis::AnalysisResult;
using analysis::CounterBalanceRow;
using analysis::CounterRow;
using model::Run;
using Type = DeclaredType;

const std::vector<CounterRow>& Counters(const AnalysisResult& result) { return result.Get<analysis::Counters>().rows; }
const std::vector<CounterBalanceRow>& CounterBalances(const AnalysisResult& result) {
  return result.Get<analysis::Counters>().balance;
}

std::vector<RowColumn<CounterRow>> CounterColumns() {
  using Row = CounterRow;
  return {
      RankColumn<Row>(),
      WindowColumn<Row>(),
      {"device", Type::kInteger, "", "Device ordinal.", "it is of the process or its host",
       [](const Run&, const Row& row) { return OptionalCell(row.device); }},
      {"name", Type::kText, "", "As the source calls it.", "",
       [](const Run&, const Row& row) { return TextCell(row.name); }},
      {"unit", Type::kText, "", "Unit of the values.", "the source does not say",
       [](const Run&, const Row& row) { return TextOrNullCell(row.unit); }},
      {"sample_count", Type::kInteger, "count", "Samples.", "",
       [](const Run&, const Row& row) { return Cell(row.sample_count); }},
      {"mean", Type::kReal, "`unit`", "Mean over time: a value counts for as long as it held.", "",
       [](const Run&, const Row& row) { return Cell(row.mean); }},
      {"min", Type::kReal, "`unit`", "The smallest sample.", "",
       [](const Run&, const Row& row) { return Cell(row.min); }},
      {"median", Type::kReal, "`unit`", "Median of the samples.", "",
       [](const Run&, const Row& row) { return Cell(row.median); }},
      {"p95", Type::kReal, "`unit`", "95th percentile of the samples.", "",
       [](const Run&, const Row& row) { return Cell(row.p95); }},
      {"max", Type::kReal, "`unit`", "The largest sample.", "",
       [](const Run&, const Row& row) { return Cell(row.max); }},
  };
}

std::vector<RowColumn<CounterBalanceRow>> CounterBalanceColumns() {
  using Row = CounterBalanceRow;
  constexpr const char* kNoDevice = "it is of the process or its host";
  return {
      {"name", Type::kText, "", "As the source calls it.", "",
       [](const Run&, const Row& row) { return TextCell(row.name); }},
      {"unit", Type::kText, "", "Unit of the values.", "the source does not say",
       [](const Run&, const Row& row) { return TextOrNullCell(row.unit); }},
      {"series_count", Type::kInteger, "count", "Ranks and devices that have it.", "",
       [](const Run&, const Row& row) { return Cell(row.series_count); }},
      {"mean", Type::kReal, "`unit`", "Mean of their means.", "",
       [](const Run&, const Row& row) { return Cell(row.mean); }},
      {"lowest_mean", Type::kReal, "`unit`", "The smallest of their means.", "",
       [](const Run&, const Row& row) { return Cell(row.lowest_mean); }},
      {"lowest_rank", Type::kInteger, "", "Rank that has it.", "",
       [](const Run& run, const Row& row) { return RankCell(run, row.lowest_rank_index); }},
      {"lowest_device", Type::kInteger, "", "Device that has it.", kNoDevice,
       [](const Run&, const Row& row) { return OptionalCell(row.lowest_device); }},
      {"highest_mean", Type::kReal, "`unit`", "The largest of their means.", "",
       [](const Run&, const Row& row) { return Cell(row.highest_mean); }},
      {"highest_rank", Type::kInteger, "", "Rank that has it.", "",
       [](const Run& run, const Row& row) { return RankCell(run, row.highest_rank_index); }},
      {"highest_device", Type::kInteger, "", "Device that has it.", kNoDevice,
       [](const Run&, const Row& row) { return OptionalCell(row.highest_device); }},
  };
}

}  // namespace

void DeclareCounterTables(std::vector<DeclaredTable>* tables) {
  tables->push_back(DeclareTable<CounterRow>(
      "counters", "counters",
      "A hardware metric of one device of one rank, or what the rank's program counts, over the recording", "counters",
      Counters, CounterColumns()));
  tables->push_back(DeclareTable<CounterBalanceRow>("counter_balance", "counter_balance",
                                                    "One such counter over ranks and devices of the first window",
                                                    "counters", CounterBalances, CounterBalanceColumns()));
}

}  // namespace lockstep::report
