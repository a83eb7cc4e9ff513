#include "inside/launch/output_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace lockstep::launch {
namespace {

using ::testing::HasSubstr;

const Environment kEnvironment({{"RANK", "3"}, {"LOCAL_RANK", "1"}, {"SLURM_JOB_ID", "17"}, {"ODD", "a/b c"}});

Result<std::string> Expand(const std::string& pattern, const std::string& ranks = "all",
                           RankIdentity identity = {.launcher = Launcher::kTorchrun,
                                                    .rank = 3,
                                                    .world_size = 8,
                                                    .local_rank = 1,
                                                    .local_size = 2,
                                                    .node = 1,
                                                    .rank_variable = "RANK"}) {
  return ExpandName(pattern, {.identity = identity,
                              .environment = kEnvironment,
                              .filter = *RankFilter::Parse(ranks),
                              .host = "n002",
                              .tool = "nsys"});
}

TEST(OutputNameTest, EveryPartIsPut) {
  EXPECT_EQ(Expand(kDefaultName).value(), "nsys.rank3-of-8.n002");
  EXPECT_EQ(Expand("train_%q{SLURM_JOB_ID}_%r_%l_%%_%t").value(), "train_17_3_1_%_nsys");
  EXPECT_EQ(Expand("%r.%q{ODD}").value(), "3.a_b_c");
}

TEST(OutputNameTest, NamesOfAllRanksDiffer) {
  std::set<std::string> names;
  for (int rank = 0; rank < 64; ++rank) {
    names.insert(Expand(kDefaultName, "all",
                        {.launcher = Launcher::kSlurm, .rank = rank, .world_size = 64, .local_rank = rank % 4})
                     .value());
  }
  EXPECT_EQ(names.size(), 64U);
}

TEST(OutputNameTest, AVariableThatIsNotSetWouldPutAllRanksIntoOneFile) {
  const auto name = Expand("train_%q{NOPE}");
  ASSERT_FALSE(name);
  EXPECT_EQ(name.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(name.error().message, HasSubstr("needs NOPE, which is not set here"));
}

TEST(OutputNameTest, PatternsThatRanksShareAreRefused) {
  for (const char* pattern : {"train", "train.%h", "train.%w", "train.%l", "%q{SLURM_JOB_ID}", "%p", "%n", "%h.%p"}) {
    const auto name = Expand(pattern);
    ASSERT_FALSE(name) << pattern;
    EXPECT_EQ(name.error().code, ErrorCode::kInvalidArgument) << pattern;
  }
  EXPECT_EQ(Expand("%h.%l").value(), "n002.1");
  EXPECT_EQ(Expand("%q{RANK}").value(), "3");
  EXPECT_EQ(Expand("%h.%q{LOCAL_RANK}").value(), "n002.1");
}

TEST(OutputNameTest, OneRankNeedsNoRankInItsName) {
  EXPECT_EQ(Expand("train", "3").value(), "train");
  EXPECT_EQ(Expand("train", "all", {}).value(), "train");
  EXPECT_EQ(Expand(kDefaultName, "all", {}).value(), "nsys.rank0-of-1.n002");
}

TEST(OutputNameTest, ARestartDoesNotMeetTheFilesBeforeIt) {
  EXPECT_EQ(Expand("%r", "all", {.launcher = Launcher::kTorchrun, .rank = 3, .world_size = 8, .restart = 1}).value(),
            "3.restart1");
}

TEST(OutputNameTest, WhatIsNoNameIsRefused) {
  for (const char* pattern : {"", "%r%", "%x%r", "%q%r", "%q{RANK", "a/%r", ".."})
    EXPECT_FALSE(Expand(pattern, "3")) << pattern;
}

TEST(OutputNameTest, AWorldThatNobodyKnowsIsSaidToBe) {
  EXPECT_EQ(Expand(kDefaultName, "all", {.launcher = Launcher::kPmix, .rank = 3}).value(),
            "nsys.rank3-of-unknown.n002");
}

}  // namespace
}  // namespace lockstep::launch
