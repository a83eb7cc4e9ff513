#include "ingest/job/rank_assignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::ingest {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Given {
  std::string name;
  std::optional<int32_t> rank = {};        // distributedInfo
  std::optional<int32_t> world_size = {};  // distributedInfo
  int64_t start_ns = 1000;
  int64_t end_ns = 2000;
};

class RankAssignmentTest : public ::testing::Test {
 protected:
  void Assign(const std::vector<Given>& given) {
    traces_.clear();
    ledger_ = {};
    for (const Given& file : given) {
      LoadedTrace loaded;
      loaded.trace.source = file.name;
      loaded.trace.rank = {file.rank.value_or(0)};
      loaded.has_rank = file.rank.has_value();
      loaded.trace.world_size = file.world_size;
      if (file.end_ns > file.start_ns) {
        loaded.trace.first_ns = file.start_ns;
        loaded.trace.last_ns = file.end_ns;
      }
      loaded.facts = ReadNameFacts(file.name);
      traces_.push_back(std::move(loaded));
    }
    AssignRanks(&traces_, &ledger_);
  }
  std::vector<int32_t> Ranks() const {
    std::vector<int32_t> ranks;
    for (const LoadedTrace& loaded : traces_) ranks.push_back(loaded.trace.rank.value);
    return ranks;
  }
  std::vector<int32_t> Windows() const {
    std::vector<int32_t> windows;
    for (const LoadedTrace& loaded : traces_) windows.push_back(loaded.set_aside ? -1 : loaded.trace.window);
    return windows;
  }
  std::vector<std::string> Codes() const {
    std::vector<std::string> codes;
    for (const auto& entry : ledger_.entries()) codes.push_back(entry.code);
    return codes;
  }
  const model::LedgerEntry& Row(const std::string& code) const {
    for (const auto& entry : ledger_.entries()) {
      if (entry.code == code) return entry;
    }
    static const model::LedgerEntry none;
    return none;
  }

  std::vector<LoadedTrace> traces_;
  model::Ledger ledger_;
};

TEST_F(RankAssignmentTest, DistributedInfoIsBelievedBeforeTheName) {
  Assign({{"rank7.json", 1, 2}, {"rank0.json", 0, 2}});
  EXPECT_THAT(Ranks(), ElementsAre(1, 0));
  EXPECT_THAT(Codes(), ElementsAre("rank_name_mismatch"));
  EXPECT_EQ(traces_[0].trace.rank_source, model::RankSource::kDistributedInfo);
}

TEST_F(RankAssignmentTest, TheNameIsBelievedBeforeTheOrder) {
  Assign({{"a.json"}, {"rank0.json"}, {"rank1.json"}, {"z.json"}});
  EXPECT_THAT(Ranks(), ElementsAre(2, 0, 1, 3));
  EXPECT_THAT(Codes(), ElementsAre("rank_from_name", "rank_from_order"));
  EXPECT_THAT(Row("rank_from_name").message, HasSubstr("0-1"));
  EXPECT_THAT(Row("rank_from_order").message, HasSubstr("2-3"));
  EXPECT_EQ(traces_[0].trace.rank_source, model::RankSource::kOrder);
  EXPECT_EQ(traces_[1].trace.rank_source, model::RankSource::kFileName);
}

TEST_F(RankAssignmentTest, ASingleFileWithoutARankIsRankZero) {
  Assign({{"trace.json"}});
  EXPECT_THAT(Ranks(), ElementsAre(0));
  EXPECT_EQ(Row("rank_from_order").source, "trace.json");
  EXPECT_EQ(Row("rank_from_order").severity, model::Severity::kInfo);
}

TEST_F(RankAssignmentTest, FilesOfOneHostAndProcessAreOneRank) {
  Assign({{"node1_17.1694128201545.pt.trace.json", {}, {}, 100, 200},
          {"node1_17.1694128201999.pt.trace.json", {}, {}, 300, 400},
          {"node1_18.1694128201545.pt.trace.json", {}, {}, 100, 200},
          {"node1_18.1694128201999.pt.trace.json", {}, {}, 300, 400}});
  EXPECT_THAT(Ranks(), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(Windows(), ElementsAre(0, 1, 0, 1));
  EXPECT_EQ(traces_[0].trace.host, "node1");
}

TEST_F(RankAssignmentTest, ANegativeRankIsNone) {
  Assign({{"rank3.json", -1, 4}});
  EXPECT_THAT(Ranks(), ElementsAre(3));
}

TEST_F(RankAssignmentTest, TracesOfARankThatDoNotOverlapAreWindowsInOrderOfTime) {
  Assign({{"b/rank0.json", 0, 1, 500, 600}, {"a/rank0.json", 0, 1, 100, 200}, {"c/rank0.json", 0, 1, 200, 300}});
  EXPECT_THAT(Windows(), ElementsAre(2, 0, 1));
  EXPECT_THAT(Codes(), ElementsAre("several_windows"));
}

TEST_F(RankAssignmentTest, TheLaterFileOfTwoThatOverlapIsSetAside) {
  Assign({{"a/rank0.json", 0, 2, 100, 300}, {"b/rank0.json", 0, 2, 299, 400}, {"rank1.json", 1, 2, 100, 300}});
  EXPECT_THAT(Windows(), ElementsAre(0, -1, 0));
  ASSERT_THAT(Codes(), ElementsAre("rank_conflict"));
  const auto& row = Row("rank_conflict");
  EXPECT_EQ(row.severity, model::Severity::kError);
  EXPECT_EQ(row.source, "b/rank0.json");
  EXPECT_EQ(row.rank, 0);
  EXPECT_THAT(row.message, HasSubstr("a/rank0.json"));
}

TEST_F(RankAssignmentTest, ATraceThatSpansTwoEarlierOnesIsSetAside) {
  Assign({{"a/rank0.json", 0, 1, 100, 200}, {"b/rank0.json", 0, 1, 300, 400}, {"c/rank0.json", 0, 1, 50, 500}});
  EXPECT_THAT(Windows(), ElementsAre(0, 1, -1));
}

TEST_F(RankAssignmentTest, ACopyInAFolderBelowGivesWay) {
  Assign({{"job/backup/rank0.json", 0, 1, 100, 200}, {"job/rank0.json", 0, 1, 100, 200}});
  EXPECT_THAT(Windows(), ElementsAre(-1, 0));
}

TEST_F(RankAssignmentTest, TracesWithoutTimesCannotBeToldApart) {
  Assign({{"a/rank0.json", 0, 1, 0, 0}, {"b/rank0.json", 0, 1, 100, 200}});
  EXPECT_THAT(Windows(), ElementsAre(0, -1));
}

TEST_F(RankAssignmentTest, WindowsAreCapturesWhenARankMissesOne) {
  Assign({{"s1/rank0.json", 0, 2, 100, 200}, {"s2/rank0.json", 0, 2, 1100, 1200}, {"s2/rank1.json", 1, 2, 1110, 1210}});
  EXPECT_THAT(Windows(), ElementsAre(0, 1, 1));
  EXPECT_THAT(Row("missing_ranks").message, ::testing::AllOf(HasSubstr("window 0"), HasSubstr("missing: 1")));
}

TEST_F(RankAssignmentTest, WindowsAreCountedPerRankWhenClocksAreTooFarApart) {
  // Rank 1's clock is far off: no capture of rank 0 overlaps one of rank 1.
  Assign({{"s1/rank0.json", 0, 2, 100, 200},
          {"s2/rank0.json", 0, 2, 300, 400},
          {"s1/rank1.json", 1, 2, 5100, 5200},
          {"s2/rank1.json", 1, 2, 5300, 5400}});
  EXPECT_THAT(Windows(), ElementsAre(0, 1, 0, 1));
}

TEST_F(RankAssignmentTest, RanksWithOneTraceEachAreOneWindowWhateverTheirClocks) {
  Assign({{"rank0.json", 0, 2, 100, 200}, {"rank1.json", 1, 2, 90000, 90100}});
  EXPECT_THAT(Windows(), ElementsAre(0, 0));
  EXPECT_THAT(Codes(), IsEmpty());
}

TEST_F(RankAssignmentTest, MissingRanksAreListedAsRanges) {
  Assign({{"rank0.json", 0, 8}, {"rank4.json", 4, 8}, {"rank7.json", 7, 8}});
  EXPECT_THAT(Codes(), ElementsAre("missing_ranks"));
  EXPECT_THAT(Row("missing_ranks").message, HasSubstr("5 of 8 ranks are missing: 1-3, 5-6"));
  EXPECT_EQ(Row("missing_ranks").count, 5u);
}

TEST_F(RankAssignmentTest, AWorldSizeOutOfThisWorldCostsNothing) {
  Assign({{"rank0.json", 0, INT32_MAX}, {"rank9.json", INT32_MAX, {}}});
  EXPECT_THAT(Row("missing_ranks").message, HasSubstr("1-2147483646"));
}

TEST_F(RankAssignmentTest, WithoutAWorldSizeGapsAreMissing) {
  Assign({{"rank0.json"}, {"rank3.json"}});
  EXPECT_THAT(Row("missing_ranks").message, HasSubstr("2 of 4 ranks are missing: 1-2"));
  Assign({{"rank34.json"}});
  EXPECT_THAT(Codes(), ElementsAre("rank_from_name")) << "one file shows no gap";
}

TEST_F(RankAssignmentTest, WorldSizesThatDifferAreReported) {
  Assign({{"rank0.json", 0, 2}, {"rank1.json", 1, 8}});
  EXPECT_THAT(Codes(), ElementsAre("mixed_world_sizes", "missing_ranks"));
  Assign({{"rank5.json", 5, 4}});
  EXPECT_THAT(Codes(), ElementsAre("rank_outside_world", "missing_ranks"));
}

TEST_F(RankAssignmentTest, TheWorldSizeOfTheNameFillsIn) {
  Assign({{"t-0-of-2.json"}, {"t-1-of-2.json"}});
  EXPECT_EQ(traces_[0].trace.world_size, 2);
  EXPECT_THAT(Codes(), ElementsAre("rank_from_name"));
}

TEST(RangesTextTest, RunsAreJoinedAndLongListsAreCut) {
  EXPECT_EQ(RangesText({}), "");
  EXPECT_EQ(RangesText({3}), "3");
  EXPECT_EQ(RangesText({0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8");
  std::vector<int32_t> odd;
  for (int32_t i = 0; i < 20; ++i) odd.push_back(2 * i);
  EXPECT_THAT(RangesText(odd), ::testing::EndsWith("30 and 4 more"));
}

}  // namespace
}  // namespace lockstep::ingest
