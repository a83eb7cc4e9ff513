#include "analysis/hang/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/nanoseconds.h"

namespace lockstep::hang {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A job of two ranks that is looked at once a second.
class Job : public ::testing::Test {
 protected:
  ProgressState Wait(int seconds, bool moves) {
    ProgressState state = ProgressState::kMoving;
    for (int i = 0; i < seconds; ++i) {
      now_ns_ += kSecondNs;
      if (moves) ++switches_;
      state = tracker_.Look(now_ns_, {Sample(0), Sample(1)});
      silent_ = silent_ || state == ProgressState::kSilent;
    }
    return state;
  }
  ProgressSample Sample(int rank) const { return {"n1/" + std::to_string(rank), rank, rank == 0 ? switches_ : 7, 0}; }

  ProgressTracker tracker_;
  int64_t now_ns_ = 0;
  int64_t switches_ = 0;
  bool silent_ = false;
};

TEST_F(Job, IsMovingWhileOneRankMoves) {
  EXPECT_EQ(Wait(100, true), ProgressState::kMoving);
  EXPECT_FALSE(silent_);
  EXPECT_EQ(tracker_.moving_count(), 1U);
  EXPECT_EQ(tracker_.median_gap_ns(), kSecondNs);
}

TEST_F(Job, IsSilentAfterFiveSecondsWhereItMovedEachSecond) {
  Wait(20, true);
  EXPECT_EQ(Wait(5, false), ProgressState::kMoving);
  EXPECT_EQ(Wait(1, false), ProgressState::kSilent);
  EXPECT_EQ(tracker_.silence_ns(), 6 * kSecondNs);
}

TEST_F(Job, OfSlowStepsIsGivenThreeOfThem) {
  for (int step = 0; step < 8; ++step) {
    Wait(20, false);
    Wait(1, true);
  }
  EXPECT_FALSE(silent_);
  EXPECT_EQ(tracker_.limit_ns(), 63 * kSecondNs);
  EXPECT_EQ(Wait(63, false), ProgressState::kMoving);
  EXPECT_EQ(Wait(1, false), ProgressState::kSilent);
}

TEST_F(Job, OfAlternatingStepsIsNotCalledSilentInTheSlowOnes) {
  for (int step = 0; step < 20; ++step) {
    Wait(10, true);
    Wait(4, false);
  }
  EXPECT_FALSE(silent_);
}

TEST_F(Job, WithoutARhythmIsGivenTimeToBegin) {
  Wait(1, true);
  EXPECT_EQ(Wait(30, false), ProgressState::kMoving);
  EXPECT_EQ(Wait(1, false), ProgressState::kSilent);
}

TEST_F(Job, ForgetsAnOldGap) {
  Wait(10, true);
  Wait(4, false);
  Wait(1, true);
  EXPECT_EQ(tracker_.limit_ns(), 15 * kSecondNs);
  Wait(60, true);
  EXPECT_EQ(tracker_.limit_ns(), 5 * kSecondNs);
}

TEST_F(Job, DisturbanceIsNoMovement) {
  Wait(20, true);
  Wait(6, false);
  tracker_.Rebase();
  EXPECT_EQ(Wait(1, true), ProgressState::kSilent) << "we ourselves woke it up";
  EXPECT_EQ(Wait(1, false), ProgressState::kSilent);
  EXPECT_EQ(Wait(1, true), ProgressState::kMoving);
}

TEST_F(Job, ExcusedSilenceIsNotCalledSoAgain) {
  Wait(20, true);
  EXPECT_EQ(Wait(6, false), ProgressState::kSilent);
  tracker_.Excuse(tracker_.silence_ns());
  EXPECT_EQ(Wait(6, false), ProgressState::kMoving);
  EXPECT_EQ(Wait(1, false), ProgressState::kSilent);
}

TEST_F(Job, ProcessorTimeIsMovement) {
  Wait(20, true);
  for (int i = 0; i < 20; ++i) {
    now_ns_ += kSecondNs;
    ProgressSample sample = Sample(0);
    sample.main_cpu_ns = i * 1'000'000;
    EXPECT_EQ(tracker_.Look(now_ns_, {sample, Sample(1)}), ProgressState::kMoving);
  }
}

TEST_F(Job, OtherThreadsThatWorkAreMovementAndThoseThatPollAreNone) {
  for (const bool works : {true, false}) {
    Wait(20, true);
    ProgressState state = ProgressState::kMoving;
    for (int i = 1; i <= 20; ++i) {
      now_ns_ += kSecondNs;
      ProgressSample sample = Sample(0);
      sample.threads_cpu_ns = i * (works ? int64_t{400'000'000} : int64_t{30'000'000});
      state = tracker_.Look(now_ns_, {sample, Sample(1)});
    }
    EXPECT_EQ(state, works ? ProgressState::kMoving : ProgressState::kSilent);
  }
}

TEST_F(Job, RanksThatEndAreNamedAndTheLastOneEndsIt) {
  Wait(3, true);
  now_ns_ += kSecondNs;
  EXPECT_EQ(tracker_.Look(now_ns_, {Sample(0)}), ProgressState::kMoving);
  EXPECT_THAT(tracker_.gone_ranks(), ElementsAre(1));
  EXPECT_EQ(tracker_.Look(now_ns_, {}), ProgressState::kEnded);
  EXPECT_THAT(tracker_.gone_ranks(), ElementsAre(0));
  ProgressTracker none;
  EXPECT_EQ(none.Look(0, {}), ProgressState::kMoving) << "it has not begun";
  EXPECT_THAT(none.gone_ranks(), IsEmpty());
}

}  // namespace
}  // namespace lockstep::hang
