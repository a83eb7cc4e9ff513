// The tables of the pass "moe".
#include "analysis/analysis_result.h"
#include "analysis/parallelism/moe.h"
#include "report/declared_tables.h"

namespace lockstep::report {
namespace {

using analysis::AnalysisResult;
using analysis::MoeRankRow;
using analysis::MoeRow;
using model::Run;
using Type = DeclaredType;

const std::vector<MoeRow>& MoeGroups(const AnalysisResult& result) { return result.Get<analysis::Moe>().groups; }
const std::vector<MoeRankRow>& MoeRanks(const AnalysisResult& result) { return result.Get<analysis::Moe>().ranks; }

Cell HottestRank(const Run& run, const MoeRow& row) { return RankCell(run, row.hottest_rank_index); }

std::vector<RowColumn<MoeRow>> MoeColumns() {
  using Row = MoeRow;
  return {
      GroupColumn<Row>(),
      {"rank_count", Type::kInteger, "count", "Ranks with a trace that call all_to_all in it.", "",
       [](const Run&, const Row& row) { return Cell(uint64_t{row.rank_count}); }},
      {"call_count", Type::kInteger, "count", "Calls of all of them.", "",
       [](const Run&, const Row& row) { return Cell(row.call_count); }},
      {"exchange_count", Type::kInteger, "count",
       "Exchanges (a call of each of two such ranks or more) whose bytes both ways are recorded on all: what the load "
       "is of.",
       "", [](const Run&, const Row& row) { return Cell(row.exchange_count); }},
      {"load_ratio", Type::kReal, "", "Largest load of a rank over all exchanges / mean of the ranks.", "no exchanges",
       [](const Run&, const Row& row) { return OptionalCell(row.load_ratio); }},
      {"exchange_load_ratio", Type::kReal, "", "The same within single exchanges, weighted by their bytes.",
       "no exchanges", [](const Run&, const Row& row) { return OptionalCell(row.exchange_load_ratio); }},
      {"hottest_rank", Type::kInteger, "", "The rank that `load_ratio` is of.", "no exchanges, or all loads are equal",
       HottestRank},
      {"pattern", Type::kText, "",
       "`even`: no exchange is much above the mean; `chronic`: it is the same ranks that are; `varying`: others each "
       "time; `once`: it is one exchange alone; `unknown`: no exchanges.",
       "", [](const Run&, const Row& row) { return TextCell(analysis::LoadPatternName(row.pattern)); }},
      {"duration_ns", Type::kInteger, "ns", "Sum of the calls' durations; waiting is in it.", "",
       [](const Run&, const Row& row) { return Cell(row.duration_ns); }},
      {"exposed_ns", Type::kInteger, "ns", "Sum of their parts in which the rank computes nothing.", "",
       [](const Run&, const Row& row) { return Cell(row.exposed_ns); }},
  };
}

std::vector<RowColumn<MoeRankRow>> MoeRankColumns() {
  using Row = MoeRankRow;
  return {
      RankColumn<Row>(),
      WindowColumn<Row>(),
      GroupColumn<Row>(),
      {"call_count", Type::kInteger, "count", "all_to_alls.", "",
       [](const Run&, const Row& row) { return Cell(row.call_count); }},
      {"sent_bytes", Type::kInteger, "bytes", "What it put in, its own share included.", "a call's is not recorded",
       [](const Run&, const Row& row) { return OptionalCell(row.sent_bytes); }},
      {"received_bytes", Type::kInteger, "bytes", "What it got, its own share included.", "a call's is not recorded",
       [](const Run&, const Row& row) { return OptionalCell(row.received_bytes); }},
      {"load_ratio", Type::kReal, "", "Its load over all exchanges / mean of the group's ranks.", "no exchanges",
       [](const Run&, const Row& row) { return OptionalCell(row.load_ratio); }},
      {"load_variation", Type::kReal, "",
       "Standard deviation / mean of that over the exchanges, weighted by their bytes.", "no exchanges, or no load",
       [](const Run&, const Row& row) { return OptionalCell(row.load_variation); }},
      {"duration_ns", Type::kInteger, "ns", "Sum of the calls' durations; waiting is in it.", "",
       [](const Run&, const Row& row) { return Cell(row.duration_ns); }},
      {"exposed_ns", Type::kInteger, "ns", "Sum of their parts in which the rank computes nothing.", "",
       [](const Run&, const Row& row) { return Cell(row.exposed_ns); }},
  };
}

}  // namespace

void DeclareMoeTables(std::vector<DeclaredTable>* tables) {
  tables->push_back(DeclareTable<MoeRow>("moe", "moe", "The all_to_alls of a process group, and how even they are",
                                         "moe", MoeGroups, MoeColumns()));
  tables->push_back(DeclareTable<MoeRankRow>("moe_ranks", "moe_ranks", "A rank's all_to_alls in a process group", "moe",
                                             MoeRanks, MoeRankColumns()));
}

}  // namespace lockstep::report
