#include "model/stages/stage.h"

#include <gtest/gtest.h>

namespace lockstep::model {
namespace {

TEST(ReadWaitTest, ASpansNameTellsTheGroupThatItWaitsFor) {
  EXPECT_EQ(ReadWait("dp[0,2]/comm").group, "dp[0,2]");
  EXPECT_FALSE(ReadWait("dp[0,2]/comm").is_pairwise);
  EXPECT_EQ(ReadWait("pp[0-6:2]/p2p").group, "pp[0-6:2]");
  EXPECT_TRUE(ReadWait("pp[0-6:2]/p2p").is_pairwise);
  EXPECT_TRUE(ReadWait("p2p").is_pairwise);
  for (const char* const of_all : {"comm", "train/comm", "]/comm", "[0/comm", "all_reduce", "", "/"}) {
    EXPECT_EQ(ReadWait(of_all).group, "") << of_all;
    EXPECT_FALSE(ReadWait(of_all).is_pairwise) << of_all;
  }
  EXPECT_EQ(StageOf("dp[0,2]/comm"), Stage::kCommunication);
  EXPECT_EQ(StageOf("pp[0-6:2]/p2p"), Stage::kCommunication);
}

}  // namespace
}  // namespace lockstep::model
