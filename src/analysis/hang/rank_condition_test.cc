#include "analysis/hang/rank_condition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/hang/job_for_test.h"

namespace lockstep::hang {
namespace {

using evidence::Liveness;
using evidence::LogEventKind;

class RankConditionTest : public ::testing::Test {
 protected:
  RankCondition Of(int32_t rank) {
    view_ = job_.View();
    return ReadConditions(view_)[static_cast<size_t>(rank)];
  }
  JobForTest job_{2};
  JobView view_;
};

TEST_F(RankConditionTest, NothingToldIsNoFailure) {
  EXPECT_FALSE(Of(0).Failed());
  EXPECT_FALSE(Of(0).FailedByItself());
}

TEST_F(RankConditionTest, AnExceptionOfItsOwnIsItsFault) {
  job_.Rank(0).exit_status = 1;
  job_.Log(0, LogEventKind::kException, "ValueError: no");
  EXPECT_TRUE(Of(0).FailedByItself());
}

TEST_F(RankConditionTest, AnExceptionOverALostPeerIsNot) {
  job_.Rank(0).exit_status = 1;
  job_.Log(0, LogEventKind::kException, "RuntimeError: Connection closed by peer [127.0.0.1]:4242");
  EXPECT_TRUE(Of(0).Failed());
  EXPECT_TRUE(Of(0).peer_lost);
  EXPECT_FALSE(Of(0).FailedByItself());
}

TEST_F(RankConditionTest, ATimeoutIsAnothersFault) {
  job_.Rank(0).exit_status = 1;
  job_.Log(0, LogEventKind::kWatchdogTimeout, "Watchdog caught collective operation timeout");
  EXPECT_FALSE(Of(0).FailedByItself());
  EXPECT_NE(Of(0).timeout, nullptr);
}

TEST_F(RankConditionTest, AnEndWithStatusZeroIsNoFailureOfItsOwn) {
  job_.Rank(0).exit_status = 0;
  EXPECT_TRUE(Of(0).finished);
  EXPECT_FALSE(Of(0).FailedByItself());
}

TEST_F(RankConditionTest, WhatALivingRankRaisedItCaught) {
  job_.Log(0, LogEventKind::kException, "ValueError: caught");
  job_.Rank(0).liveness = Liveness::kRunning;
  job_.Rank(0).process.emplace().state = 'S';
  job_.MainThreadIn(0, {{"step", "/home/user/train.py", 4}});
  EXPECT_FALSE(Of(0).raised);
}

TEST_F(RankConditionTest, ALaunchersWordOfASignalGoesToTheRankThatItNames) {
  job_.Log(0, LogEventKind::kSignal, "Signal 9 (SIGKILL) received by rank 1");
  job_.Rank(0).log.back().rank = 1;
  job_.Rank(0).log.back().signal = 9;
  EXPECT_EQ(Of(0).signal, 0);
  EXPECT_EQ(Of(1).signal, 9);
  EXPECT_TRUE(Of(1).gone);
}

TEST_F(RankConditionTest, ASignalForARankThatIsNotThereIsPassedOver) {
  job_.Log(0, LogEventKind::kSignal, "");
  job_.Rank(0).log.back().rank = 1000;
  EXPECT_FALSE(Of(0).gone);
}

TEST_F(RankConditionTest, StatesOfProcKeepTheirMeaning) {
  job_.Rank(0).process.emplace().state = 'T';
  EXPECT_TRUE(Of(0).stopped);
  job_.Rank(0).process->state = 'Z';
  EXPECT_TRUE(Of(0).zombie);
  job_.Rank(0).process->state = 'D';
  EXPECT_TRUE(Of(0).disk_wait);
  job_.Rank(0).process->state = 'X';
  EXPECT_TRUE(Of(0).gone);
}

TEST_F(RankConditionTest, ARankThatALiveLookDidNotFindIsAbsent) {
  job_.evidence().ranks.pop_back();
  job_.evidence().live = true;
  EXPECT_TRUE(Of(1).absent);
  EXPECT_TRUE(Of(1).gone);
}

TEST_F(RankConditionTest, ARankOfANodeThatDidNotAnswerIsOutOfReachAndNotAbsent) {
  job_.evidence().ranks.pop_back();
  job_.evidence().live = true;
  job_.evidence().missing.emplace_back().what = "node";
  EXPECT_TRUE(Of(1).unreachable);
  EXPECT_FALSE(Of(1).absent);
}

}  // namespace
}  // namespace lockstep::hang
