#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/nanoseconds.h"
#include "node/agent/capture/target_progress_fixture.h"

namespace lockstep::agent {
namespace {

using control::TargetState;
using testing::HasSubstr;
using testing::MatchesRegex;
using Kind = FileObservation::Kind;

TEST(TargetProgressTest, ARequestWithoutAStartIsGivenOneBetweenTheTurnsOfKinetosLoop) {
  EXPECT_EQ(Way(Duration()).progress.StartAfterDeliveryNs(), kSecondNs * 7 / 2);
  EXPECT_EQ(Way(Timed(20)).progress.StartAfterDeliveryNs(), 0);
  EXPECT_EQ(Way(Iterations()).progress.StartAfterDeliveryNs(), 0);
  TargetPlan old = Duration();
  old.torch_release = std::pair(2, 0);
  EXPECT_EQ(Way(old).progress.StartAfterDeliveryNs(), 0);
}

TEST(TargetProgressTest, ADurationTraceGoesThroughAllStates) {
  Way way(Duration());
  way.To(2);
  EXPECT_EQ(way.progress.state(), TargetState::kQueued);
  way.Deliver();
  EXPECT_EQ(way.progress.state(), TargetState::kDelivered);
  EXPECT_EQ(way.progress.delivered_unix_ns(), Way::At(2).wall_ns);
  way.To(3);
  way.Unfinished(0);
  way.To(3.4);
  EXPECT_EQ(way.progress.state(), TargetState::kWarming);
  way.To(5.4);
  EXPECT_EQ(way.progress.state(), TargetState::kWarming);
  way.To(5.7);
  EXPECT_EQ(way.progress.state(), TargetState::kCollecting);
  way.To(6.3);
  EXPECT_EQ(way.progress.state(), TargetState::kWriting);
  way.Finished(4711);
  way.To(6.5);
  EXPECT_EQ(way.progress.state(), TargetState::kDone);
  EXPECT_EQ(way.progress.trace_bytes(), 4711u);
  EXPECT_EQ(way.progress.reason(), "");
  EXPECT_TRUE(way.progress.finished_unix_ns());
}

TEST(TargetProgressTest, ATraceBetweenTwoLooksIsDoneAtOnce) {
  Way way(Duration());
  way.Deliver();
  way.Finished(1);
  way.To(0.2);
  EXPECT_EQ(way.progress.state(), TargetState::kDone);
  EXPECT_TRUE(way.progress.begun_unix_ns());
}

TEST(TargetProgressTest, AFileOfAnUnseenDeliveryCounts) {
  Way way(Duration());
  way.Unfinished(0);
  way.To(0.2);
  EXPECT_EQ(way.progress.state(), TargetState::kWarming);
  EXPECT_TRUE(way.progress.delivered_unix_ns());
}

TEST(TargetProgressTest, AQueuedRequestIsTakenBackWhenItsStartCannotBeMet) {
  Way way(Timed(9));
  way.To(6.8);
  EXPECT_EQ(way.progress.state(), TargetState::kQueued);
  way.withdraw = false;
  way.To(7.2);
  EXPECT_TRUE(way.progress.WantsWithdrawal());
  EXPECT_EQ(way.progress.state(), TargetState::kQueued);
  way.withdraw = true;
  way.To(7.4);
  EXPECT_EQ(way.progress.state(), TargetState::kRefused);
  EXPECT_THAT(way.progress.reason(), HasSubstr("did not poll in time"));
}

TEST(TargetProgressTest, ADeliveryInTheMomentOfTheWithdrawalCounts) {
  Way way(Timed(9));
  way.withdraw = false;
  way.To(7.2);
  ASSERT_TRUE(way.progress.WantsWithdrawal());
  way.Deliver();
  EXPECT_FALSE(way.progress.WantsWithdrawal());
  way.progress.GiveUp(Way::At(8));
  EXPECT_EQ(way.progress.state(), TargetState::kDelivered);
}

TEST(TargetProgressTest, AProcessThatStopsPollingTimesOutAndIsNamedSo) {
  Way way(Duration());
  way.facts.silent = true;
  way.To(20);
  EXPECT_EQ(way.progress.state(), TargetState::kQueued);
  EXPECT_THAT(way.progress.reason(), HasSubstr("has not polled since"));
  way.To(61);
  EXPECT_EQ(way.progress.state(), TargetState::kTimedOut);
  EXPECT_THAT(way.progress.reason(), HasSubstr("it is stopped, hangs, or was restarted"));
}

TEST(TargetProgressTest, AProcessThatNeverComesBackAfterARestartTimesOut) {
  Way way(Duration());
  way.polls = false;
  way.facts = {};
  way.To(61);
  EXPECT_EQ(way.progress.state(), TargetState::kTimedOut);
  EXPECT_THAT(way.progress.reason(), HasSubstr("has not registered since the daemon started"));
}

TEST(TargetProgressTest, ItsOwnProfilerKeepsARequestQueued) {
  Way way(Duration());
  way.busy = way.facts.busy = true;
  way.To(20);
  EXPECT_EQ(way.progress.state(), TargetState::kQueued);
  EXPECT_THAT(way.progress.reason(), HasSubstr("own torch.profiler"));
  way.To(61);
  EXPECT_EQ(way.progress.state(), TargetState::kTimedOut);
  EXPECT_THAT(way.progress.reason(), HasSubstr("own torch.profiler"));
}

TEST(TargetProgressTest, NothingIsExpectedBeforeTheHandingOver) {
  TargetPlan plan = Duration();
  plan.deliver_from_unix_ns = Way::At(100).wall_ns;
  Way way(plan);
  way.To(99);
  EXPECT_EQ(way.progress.state(), TargetState::kQueued);
  EXPECT_THAT(way.progress.reason(), HasSubstr("handed over at"));
  way.To(158);
  EXPECT_EQ(way.progress.state(), TargetState::kQueued);
  way.To(162);
  EXPECT_EQ(way.progress.state(), TargetState::kTimedOut);
}

TEST(TargetProgressTest, WaitingForAnotherCaptureIsNoLackOfProgress) {
  Way way(Duration());
  for (int i = 1; i <= 300; ++i) {
    way.To(i);
    way.progress.WaitsFor("waits for the end of another", Way::At(i));
  }
  EXPECT_EQ(way.progress.state(), TargetState::kQueued);
  EXPECT_THAT(way.progress.reason(), HasSubstr("end of another"));
}

TEST(TargetProgressTest, AnIterationThatNeverBeginsTimesOutWithTheLikelyReasons) {
  Way way(Iterations());
  way.Deliver();
  way.To(59);
  EXPECT_EQ(way.progress.state(), TargetState::kDelivered);
  way.To(61);
  EXPECT_EQ(way.progress.state(), TargetState::kTimedOut);
  EXPECT_THAT(way.progress.reason(), HasSubstr("no optimizer step was counted"));
  EXPECT_THAT(way.progress.reason(), HasSubstr("KINETO_USE_DAEMON empty"));
  EXPECT_THAT(way.progress.reason(), testing::Not(HasSubstr("before 2.10")));
}

TEST(TargetProgressTest, OldVersionsThatDropEarlyRequestsAreNamed) {
  TargetPlan plan = Iterations();
  plan.torch_release = std::pair(2, 6);
  Way way(plan);
  way.Deliver();
  way.To(61);
  EXPECT_THAT(way.progress.reason(), HasSubstr("before 2.10"));
}

TEST(TargetProgressTest, IterationsCollectFromTheFirstSightOfTheFile) {
  Way way(Iterations());
  way.Deliver();
  way.To(30);
  way.Unfinished(0);
  way.busy = way.facts.busy = true;
  way.To(30.4);
  EXPECT_EQ(way.progress.state(), TargetState::kCollecting);
  way.To(88);
  EXPECT_EQ(way.progress.state(), TargetState::kCollecting);
  way.To(92);
  EXPECT_EQ(way.progress.state(), TargetState::kTimedOut);
  EXPECT_THAT(way.progress.reason(), HasSubstr("iterations did not end"));
}

TEST(TargetProgressTest, IterationsWarmUpWhereTheyWereAskedTo) {
  TargetPlan plan = Iterations();
  plan.warmup_iterations = 2;
  Way way(plan);
  way.Deliver();
  way.Unfinished(0);
  way.To(0.2);
  EXPECT_EQ(way.progress.state(), TargetState::kWarming);
  way.Unfinished(10);
  way.To(0.4);
  EXPECT_EQ(way.progress.state(), TargetState::kWriting);
}

TEST(TargetProgressTest, AFileThatGrowsIsWaitedForHoweverLong) {
  Way way(Duration());
  way.Deliver();
  way.busy = way.facts.busy = true;
  for (int i = 1; i < 600; i += 10) {
    way.Unfinished(static_cast<uint64_t>(i) * 1'000'000);
    way.To(i);
  }
  EXPECT_EQ(way.progress.state(), TargetState::kWriting);
  way.Finished(1'000'000'000);
  way.To(601);
  EXPECT_EQ(way.progress.state(), TargetState::kDone);
}

TEST(TargetProgressTest, AFileThatStopsGrowingTimesOut) {
  Way way(Duration());
  way.Deliver();
  way.busy = way.facts.busy = true;
  way.Unfinished(77);
  way.To(70);
  EXPECT_EQ(way.progress.state(), TargetState::kTimedOut);
  EXPECT_THAT(way.progress.reason(), HasSubstr("did not grow"));
}

TEST(TargetProgressTest, ALongWindowIsNoLackOfProgress) {
  TargetPlan plan = Duration();
  plan.duration_ns = 3600 * kSecondNs;
  Way way(plan);
  way.Deliver();
  way.Unfinished(0);
  way.busy = way.facts.busy = true;
  way.To(3500);
  EXPECT_EQ(way.progress.state(), TargetState::kCollecting);
}

TEST(TargetProgressTest, AFarStartIsNoLackOfProgress) {
  Way way(Timed(500));
  way.Deliver();
  way.To(498);
  EXPECT_EQ(way.progress.state(), TargetState::kDelivered);
  EXPECT_THAT(way.progress.reason(), HasSubstr("starts at"));
  way.Unfinished(0);
  way.To(499.4);
  EXPECT_EQ(way.progress.state(), TargetState::kWarming);
}

TEST(TargetProgressTest, AStoppedProcessIsNotCalledRefused) {
  Way way(Duration());
  way.Deliver();
  way.facts.silent = true;
  way.To(50);
  EXPECT_EQ(way.progress.state(), TargetState::kDelivered);
  way.To(61);
  EXPECT_EQ(way.progress.state(), TargetState::kTimedOut);
  EXPECT_THAT(way.progress.reason(), HasSubstr("stopped"));
}

TEST(TargetProgressTest, AStepOfMinutesIsWaitedForBeforeAndWithinATrace) {
  TargetPlan plan = AtSteps();
  plan.timeout_ns = 600 * kSecondNs;
  Way way(plan);
  EXPECT_EQ(way.progress.StartAfterDeliveryNs(), 0);
  way.Deliver();
  way.busy = true;
  way.To(500);
  EXPECT_EQ(way.progress.state(), TargetState::kDelivered);
  EXPECT_EQ(way.progress.reason(), "waits for the step at which it begins");
  way.Unfinished(0);
  way.To(1000);
  EXPECT_EQ(way.progress.state(), TargetState::kCollecting);
  way.Finished(4711);
  way.To(1001);
  EXPECT_EQ(way.progress.state(), TargetState::kDone);
}

TEST(TargetProgressTest, ATracerSaysWhatItWaitsForAndWhyItRefused) {
  Way way(AtSteps());
  way.Deliver();
  way.busy = true;
  way.facts.waits_for = "waits until the torch.profiler ends";
  way.To(20);
  EXPECT_EQ(way.progress.state(), TargetState::kDelivered);
  EXPECT_EQ(way.progress.reason(), "waits until the torch.profiler ends");
  way.facts.refusal = "OSError: no space left";
  way.To(21);
  EXPECT_EQ(way.progress.state(), TargetState::kRefused);
  EXPECT_EQ(way.progress.reason(), "OSError: no space left");
}

TEST(TargetProgressTest, ATracerThatIsFreeAgainWithoutATraceHasLostIt) {
  Way way(AtSteps());
  way.Deliver();
  way.busy = true;
  way.To(20);
  way.busy = false;
  way.To(24);
  EXPECT_EQ(way.progress.state(), TargetState::kDelivered);
  way.To(40);
  EXPECT_EQ(way.progress.state(), TargetState::kRefused);
  EXPECT_EQ(way.asked_again, 0);
}

TEST(TargetProgressTest, StepsThatNeverEndAreGivenUp) {
  Way way(AtSteps());
  way.Deliver();
  way.busy = true;
  way.To(59);
  EXPECT_EQ(way.progress.state(), TargetState::kDelivered);
  way.To(62);
  EXPECT_EQ(way.progress.state(), TargetState::kTimedOut);
  EXPECT_THAT(way.progress.reason(), HasSubstr("no step ended to begin with for 60 s"));
}

TEST(TargetProgressTest, AWindowLongerThanTheTimeoutIsNoLackOfProgress) {
  TargetPlan plan = AtSteps();
  plan.duration_ns = 600 * kSecondNs;
  Way way(plan);
  way.Deliver();
  way.busy = true;
  way.Unfinished(0);
  way.To(599);
  EXPECT_EQ(way.progress.state(), TargetState::kCollecting);
  way.To(650);
  EXPECT_EQ(way.progress.state(), TargetState::kCollecting);
  way.To(662);
  EXPECT_EQ(way.progress.state(), TargetState::kTimedOut);
}

TEST(TargetProgressTest, ATracerIsHandedACommonStartUntilItHasPassed) {
  TargetPlan plan = Timed(4);
  plan.at_steps = true;
  plan.warmup_ns = 5 * kSecondNs;
  Way way(plan);
  way.To(3.9);
  EXPECT_EQ(way.progress.state(), TargetState::kQueued);
  way.To(4.3);
  EXPECT_EQ(way.progress.state(), TargetState::kRefused);
}

TEST(TargetProgressTest, AnEndSaysHowFarItWas) {
  const auto reason = [](const std::function<void(Way*)>& drive) {
    Way way(Duration());
    drive(&way);
    way.progress.Ended({.unix_ns = Way::At(10).wall_ns, .signal = SIGSEGV}, Way::At(10));
    EXPECT_EQ(way.progress.state(), TargetState::kDied);
    return way.progress.reason();
  };
  EXPECT_THAT(reason([](Way*) {}), MatchesRegex("the process was ended by SIGSEGV at [0-9:]+ UTC before it fetched.*"));
  EXPECT_THAT(reason([](Way* way) { way->Deliver(); }), HasSubstr("before its trace began"));
  EXPECT_THAT(reason([](Way* way) {
                way->Deliver();
                way->Unfinished(0);
                way->To(1);
              }),
              HasSubstr("warmed up"));
  EXPECT_THAT(reason([](Way* way) {
                way->Deliver();
                way->Unfinished(55);
                way->To(5);
              }),
              HasSubstr("wrote its trace (55 bytes"));
}

TEST(TargetProgressTest, AnEndAfterTheLastRenameIsDone) {
  Way way(Duration());
  way.Deliver();
  way.Finished(9);
  way.To(1);
  way.progress.Ended({}, Way::At(1));
  EXPECT_EQ(way.progress.state(), TargetState::kDone);
}

TEST(TargetProgressTest, FinalStatesStay) {
  Way way(Duration());
  way.progress.Cancel("enough", Way::At(1));
  way.Deliver();
  way.Finished(3);
  way.To(100);
  way.progress.Ended({}, Way::At(101));
  way.progress.Refuse("no", Way::At(101));
  EXPECT_EQ(way.progress.state(), TargetState::kCancelled);
  EXPECT_EQ(way.progress.reason(), "enough");
  EXPECT_EQ(way.progress.finished_unix_ns(), Way::At(1).wall_ns);
}

TEST(TargetProgressTest, ARestoredTargetGoesOnWhereItWas) {
  control::CaptureTarget left;
  left.state = TargetState::kDelivered;
  left.delivered_unix_ns = Way::At(-100).wall_ns;
  TargetProgress progress(Duration(), Way::At(0), left);
  progress.Tick(Way::At(1));
  EXPECT_EQ(progress.state(), TargetState::kDelivered);  // What happened meanwhile has time to show.
  progress.Observed({.kind = Kind::kFinished, .size_bytes = 5}, Way::At(2));
  EXPECT_EQ(progress.state(), TargetState::kDone);
  EXPECT_EQ(progress.delivered_unix_ns(), Way::At(-100).wall_ns);
}

TEST(TargetProgressTest, OldVersionsStartLater) {
  TargetPlan plan = Duration();
  plan.torch_release = std::pair(2, 0);
  Way way(plan);
  way.Deliver();
  EXPECT_EQ(way.progress.ExpectedEndUnixNs(), Way::At(11.5).wall_ns);
}

}  // namespace
}  // namespace lockstep::agent
