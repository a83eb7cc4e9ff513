#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/nanoseconds.h"
#include "node/agent/capture/target_progress_fixture.h"

namespace lockstep::agent {
namespace {

using control::TargetState;
using testing::HasSubstr;
using Kind = FileObservation::Kind;

TEST(TargetLossTest, ADroppedRequestIsAskedForAgainAfterItsTime) {
  Way way(Duration());
  way.Deliver();
  way.To(16);
  EXPECT_EQ(way.progress.state(), TargetState::kDelivered);  // 2 s to begin, and 15 s of grace.
  EXPECT_EQ(way.asked_again, 0);
  way.To(17.8);
  EXPECT_EQ(way.progress.state(), TargetState::kQueued);
  EXPECT_THAT(way.progress.reason(), HasSubstr("dropped the request once before"));
  EXPECT_EQ(way.asked_again, 1);
  way.To(20);
  way.Deliver();
  EXPECT_EQ(way.progress.delivered_unix_ns(), Way::At(20).wall_ns);
  way.Finished(12);
  way.To(22);
  EXPECT_EQ(way.progress.state(), TargetState::kDone);
}

TEST(TargetLossTest, OneThatDropsEveryRequestIsRefused) {
  Way way(Duration());
  for (const double at : {0, 30, 60}) {
    EXPECT_EQ(way.progress.state(), TargetState::kQueued);
    way.To(at);
    way.Deliver();
    way.To(at + 20);
  }
  EXPECT_EQ(way.asked_again, 2);
  EXPECT_EQ(way.progress.state(), TargetState::kRefused);
  EXPECT_THAT(way.progress.reason(), HasSubstr("without a message"));
  EXPECT_THAT(way.progress.reason(), HasSubstr("asked 3 times"));
}

TEST(TargetLossTest, WhatWouldBeginTooLateOrOverSomeonesFileIsNotAskedAgain) {
  TargetPlan foreign = Duration();
  foreign.may_ask_again = false;
  for (const TargetPlan& plan : {Timed(10), foreign}) {
    Way way(plan);
    way.Deliver();
    way.To(40);
    EXPECT_EQ(way.progress.state(), TargetState::kRefused);
    EXPECT_THAT(way.progress.reason(), HasSubstr("without a message"));
  }
}

TEST(TargetLossTest, ALateFetchIsNamedAsTheReason) {
  TargetPlan plan = Timed(8);
  plan.warmup_ns = 5 * kSecondNs;
  Way way(plan);
  way.To(1.9);
  way.Deliver();
  way.To(30);
  EXPECT_EQ(way.progress.state(), TargetState::kRefused);
  EXPECT_THAT(way.progress.reason(), HasSubstr("6.1 s before the common start"));
  EXPECT_THAT(way.progress.reason(), HasSubstr("longer lead"));
}

TEST(TargetLossTest, ALateFetchIsNamedWhereTheFileWasMadeAllTheSame) {
  TargetPlan plan = Timed(5);
  plan.warmup_ns = 5 * kSecondNs;
  Way way(plan);
  way.Deliver();
  way.To(1);
  way.Unfinished(0);  // As PyTorch 2.13 does; it never shows busy.
  way.To(30);
  EXPECT_EQ(way.progress.state(), TargetState::kRefused);
  EXPECT_THAT(way.progress.reason(), HasSubstr("5.0 s before the common start"));
}

TEST(TargetLossTest, ItsOwnProfilerAfterTheDeliveryIsTheReason) {
  Way way(Duration());
  way.Deliver();
  way.To(1);
  way.facts.busy = true;
  way.busy = true;
  way.To(12);
  way.busy = false;
  way.To(40);
  EXPECT_EQ(way.progress.state(), TargetState::kRefused);
  EXPECT_THAT(way.progress.reason(), HasSubstr("own torch.profiler was active"));
}

TEST(TargetLossTest, ACancelledTraceIsSeenByAFreeProfilerAndALeftFile) {
  Way way(Duration());
  way.Deliver();
  way.Unfinished(0);
  way.busy = way.facts.busy = true;
  way.To(2);
  way.busy = false;
  way.To(20);
  EXPECT_EQ(way.progress.state(), TargetState::kRefused);
  EXPECT_THAT(way.progress.reason(), HasSubstr("its own torch.profiler started"));
}

TEST(TargetLossTest, ATraceThatWasNeverSeenToRunMayHaveBeenLookedAtTooLate) {
  Way way(Duration());
  way.Deliver();
  way.Unfinished(0);
  way.To(20);
  EXPECT_EQ(way.asked_again, 1);
  EXPECT_EQ(way.progress.state(), TargetState::kQueued);
  EXPECT_FALSE(way.progress.begun_unix_ns());
}

TEST(TargetLossTest, AFullDiskIsNamed) {
  Way way(Duration());
  way.Deliver();
  way.file = {.kind = Kind::kUnfinished, .size_bytes = 8192, .free_bytes = 0};
  way.To(20);
  EXPECT_EQ(way.progress.state(), TargetState::kRefused);
  EXPECT_THAT(way.progress.reason(), HasSubstr("disk is full"));
}

TEST(TargetLossTest, AHalfWrittenFileOfAFreeProfilerIsRefused) {
  Way way(Duration());
  way.Deliver();
  way.Unfinished(8192);
  way.To(20);
  EXPECT_EQ(way.progress.state(), TargetState::kRefused);
  EXPECT_THAT(way.progress.reason(), HasSubstr("8192 bytes"));
}

TEST(TargetLossTest, AProcessThatGoesOnGetsItsTimeToBegin) {
  Way way(Duration());
  way.Deliver();
  way.facts.silent = true;
  way.To(40);
  way.facts.silent = false;
  way.To(50);
  EXPECT_EQ(way.progress.state(), TargetState::kDelivered);
  way.To(56);
  EXPECT_EQ(way.asked_again, 1);
}

TEST(TargetLossTest, SomethingElseUnderTheNameIsRefused) {
  Way way(Duration());
  way.Deliver();
  way.file.kind = Kind::kUnusable;
  way.To(1);
  EXPECT_EQ(way.progress.state(), TargetState::kRefused);
}

TEST(TargetLossTest, AVanishedFolderIsNamed) {
  Way way(Duration());
  way.Deliver();
  way.file.kind = Kind::kNoFolder;
  way.To(20);
  EXPECT_EQ(way.progress.state(), TargetState::kRefused);
  EXPECT_THAT(way.progress.reason(), HasSubstr("folder for its trace was removed"));
}

control::CaptureTarget Left(TargetState state) {
  control::CaptureTarget left;
  left.state = state;
  if (state != TargetState::kQueued) left.delivered_unix_ns = Way::At(-2).wall_ns;
  return left;
}

TEST(TargetLossTest, ACommonStartThatPassesAboutARestartIsMadeUpFor) {
  for (const double start : {-20.0, 1.0, 12.0}) {
    Way way(Timed(start), Left(TargetState::kQueued));
    way.To(13);  // No poll comes in time.
    EXPECT_EQ(way.progress.state(), TargetState::kQueued) << start;
    EXPECT_EQ(way.asked_again, 1) << start;
    EXPECT_EQ(way.progress.missed_start_unix_ns(), Way::At(start).wall_ns);
    EXPECT_THAT(way.progress.reason(), HasSubstr("it missed the common start at "));
    way.Deliver();
    EXPECT_EQ(way.progress.ExpectedEndUnixNs(), Way::At(13 + 3.5 + 0.5).wall_ns);
    way.Finished(12);
    way.To(20);
    EXPECT_EQ(way.progress.state(), TargetState::kDone);
    EXPECT_THAT(way.progress.reason(), HasSubstr("because its daemon was restarted about then: traced by itself"));
  }
}

TEST(TargetLossTest, OneThatWasMadeUpForIsSoAfterTheNextRestart) {
  control::CaptureTarget left = Left(TargetState::kQueued);
  left.missed_start_unix_ns = Way::At(-30).wall_ns;
  Way way(Timed(-30), left);
  way.To(10);
  EXPECT_EQ(way.progress.state(), TargetState::kQueued);
  EXPECT_EQ(way.asked_again, 0);
  way.Deliver();
  way.Finished(12);
  way.To(20);
  EXPECT_EQ(way.progress.state(), TargetState::kDone);
  EXPECT_EQ(way.progress.missed_start_unix_ns(), left.missed_start_unix_ns);
}

TEST(TargetLossTest, ACommonStartThatIsDroppedAboutARestartIsMadeUpFor) {
  Way way(Timed(0.5), Left(TargetState::kDelivered));
  way.To(20);
  EXPECT_EQ(way.progress.state(), TargetState::kQueued);
  EXPECT_EQ(way.progress.missed_start_unix_ns(), Way::At(0.5).wall_ns);
}

TEST(TargetLossTest, ACommonStartThatIsMissedLongAfterARestartIsNot) {
  Way way(Timed(60), Left(TargetState::kQueued));
  way.To(61);
  EXPECT_EQ(way.progress.state(), TargetState::kRefused);
  EXPECT_THAT(way.progress.reason(), HasSubstr("did not poll in time for the common start at "));
}

}  // namespace
}  // namespace lockstep::agent
