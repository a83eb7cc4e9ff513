#include "inside/launch/rank_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::launch {
namespace {

using ::testing::ElementsAre;

constexpr int kRanksPerNode = 4;

// Which of 32 ranks on 8 nodes, four each, a filter selects.
std::vector<int> Selected(const std::string& text) {
  const auto filter = RankFilter::Parse(text);
  EXPECT_TRUE(filter) << text;
  std::vector<int> ranks;
  for (int rank = 0; filter && rank < 32; ++rank) {
    const RankIdentity identity{.launcher = Launcher::kTorchrun,
                                .rank = rank,
                                .world_size = 32,
                                .local_rank = rank % kRanksPerNode,
                                .local_size = kRanksPerNode,
                                .node = rank / kRanksPerNode};
    const auto selects = filter->Selects(identity, "n" + std::to_string(rank / kRanksPerNode) + ".cluster");
    EXPECT_TRUE(selects);
    if (selects.value_or(false)) ranks.push_back(rank);
  }
  return ranks;
}

TEST(RankFilterTest, EachFormSelectsItsRanks) {
  EXPECT_EQ(Selected("all").size(), 32U);
  EXPECT_THAT(Selected("0,3"), ElementsAre(0, 3));
  EXPECT_THAT(Selected("list:0,8-11"), ElementsAre(0, 8, 9, 10, 11));
  EXPECT_THAT(Selected("first:3"), ElementsAre(0, 1, 2));
  EXPECT_THAT(Selected("every:10"), ElementsAre(0, 10, 20, 30));
  EXPECT_THAT(Selected("local:0"), ElementsAre(0, 4, 8, 12, 16, 20, 24, 28));
  EXPECT_THAT(Selected("per-node:1"), ElementsAre(0, 4, 8, 12, 16, 20, 24, 28));
  EXPECT_EQ(Selected("per-node:2").size(), 16U);
  EXPECT_EQ(Selected("local:0-1"), Selected("per-node:2"));
  EXPECT_THAT(Selected("node:1"), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(Selected("host:n1"), ElementsAre(4, 5, 6, 7));  // Not n10.
  EXPECT_THAT(Selected("31,host:n1.cluster"), ElementsAre(4, 5, 6, 7, 31));
  EXPECT_THAT(Selected("40"), ElementsAre());
}

TEST(RankFilterTest, WhatIsNoFilterIsRefused) {
  for (const char* text : {"", ",", "0,", "x", "-1", "3-1", "0x3", "first:0", "first:", "every:0", "local:", "local:x",
                           "host:", "rank:0", "999999999999", "local:0,1"}) {
    const auto filter = RankFilter::Parse(text);
    ASSERT_FALSE(filter) << text;
    EXPECT_EQ(filter.error().code, ErrorCode::kInvalidArgument) << text;
  }
}

TEST(RankFilterTest, WhatTheLauncherDoesNotSayIsAnError) {
  const RankIdentity flux{.launcher = Launcher::kFlux, .rank = 3, .world_size = 4};
  for (const char* text : {"local:0", "node:0", "per-node:1"}) {
    const auto selects = RankFilter::Parse(text)->Selects(flux, "h");
    ASSERT_FALSE(selects) << text;
    EXPECT_EQ(selects.error().code, ErrorCode::kFailedPrecondition);
  }
  EXPECT_TRUE(*RankFilter::Parse("3,local:0")->Selects(flux, "h"));
  EXPECT_FALSE(*RankFilter::Parse("0")->Selects(flux, "h"));
}

TEST(RankFilterTest, AProcessAloneIsRankZero) {
  for (const char* text : {"0", "all", "local:0", "first:8", "node:0", "every:4"})
    EXPECT_TRUE(*RankFilter::Parse(text)->Selects({}, "h")) << text;
  EXPECT_FALSE(*RankFilter::Parse("1")->Selects({}, "h"));
}

TEST(RankFilterTest, OneRankOrAllIsKnownBeforehand) {
  EXPECT_TRUE(RankFilter::Parse("3")->SelectsOneAtMost());
  EXPECT_TRUE(RankFilter::Parse("first:1")->SelectsOneAtMost());
  EXPECT_FALSE(RankFilter::Parse("local:0")->SelectsOneAtMost());
  EXPECT_FALSE(RankFilter::Parse("3,4")->SelectsOneAtMost());
  EXPECT_TRUE(RankFilter::Parse("all")->SelectsAll());
  EXPECT_FALSE(RankFilter::Parse("first:8")->SelectsAll());
}

}  // namespace
}  // namespace lockstep::launch
