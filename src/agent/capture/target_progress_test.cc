#include "agent/capture/target_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::agent {
namespace {

using control::CaptureWindow;
using control::TargetState;
using testing::HasSubstr;
using Kind = FileObservation::Kind;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kWall = 1'800'000'000 * kSecond;

// One target, driven by a clock of the test's: seconds since the request.
class Way {
 public:
  explicit Way(const TargetPlan& plan) : progress(plan, At(0)) {
    facts.registered = true;
    facts.last_poll_unix_ns = kWall - kSecond;
  }
  static Instant At(double seconds) {
    const auto ns = static_cast<int64_t>(seconds * 1e9);
    return {.wall_ns = kWall + ns, .monotonic_ns = 7 * kSecond + ns};
  }
  // Time passes to `seconds`, in steps of 0.2 s as the manager's; polls come each 5 s while not silent.
  void To(double seconds) {
    for (; now_ < seconds; now_ = std::min(seconds, now_ + 0.2)) Step();
    Step();
  }
  void Step() {
    if (polls && !facts.silent && kWall + static_cast<int64_t>(now_ * 1e9) - facts.last_poll_unix_ns >= 5 * kSecond) {
      facts.last_poll_unix_ns = At(now_).wall_ns;
      facts.busy = busy;
    }
    progress.Observed(file, At(now_));
    progress.Polled(facts, At(now_));
    progress.Tick(At(now_));
    if (progress.TakeAskAgain()) {  // As the manager does.
      file = {};
      ++asked_again;
    }
    if (progress.WantsWithdrawal() && withdraw) progress.GiveUp(At(now_));
  }
  void Deliver() { progress.Delivered(At(now_).wall_ns, At(now_)); }
  void Unfinished(uint64_t size) { file = {.kind = Kind::kUnfinished, .size_bytes = size}; }
  void Finished(uint64_t size) { file = {.kind = Kind::kFinished, .size_bytes = size}; }

  TargetProgress progress;
  PollFacts facts;
  FileObservation file;
  int asked_again = 0;
  bool busy = false;
  bool polls = true;
  bool withdraw = true;

 private:
  double now_ = 0;
};

TargetPlan Duration() {
  return {
      .duration_ns = kSecond / 2, .warmup_ns = kSecond, .timeout_ns = 60 * kSecond, .torch_release = std::pair(2, 13)};
}
TargetPlan Timed(double start) {
  TargetPlan plan = Duration();
  plan.start_unix_ns = Way::At(start).wall_ns;
  return plan;
}
TargetPlan Iterations() {
  TargetPlan plan = Duration();
  plan.mode = CaptureWindow::Mode::kIterations;
  return plan;
}

TEST(TargetProgressTest, ARequestWithoutAStartIsGivenOneBetweenTheTurnsOfKinetosLoop) {
  EXPECT_EQ(Way(Duration()).progress.StartAfterDeliveryNs(), kSecond * 7 / 2);
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

TEST(TargetProgressTest, ADroppedRequestIsAskedForAgainAfterItsTime) {
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

TEST(TargetProgressTest, OneThatDropsEveryRequestIsRefused) {
  Way way(Duration());
  for (const double at : {0, 30, 60}) {
    EXPECT_EQ(way.progress.state(), TargetState::kQueued);
    way.To(at);
    way.Deliver();
    way.To(at + 20);
  }
  EXPECT_EQ(way.asked_again, 2);
  EXPECT_EQ(way.progress.state(), TargetState::kRefused);
  EXPECT_THAT(way.progress.reason(), HasSubstr("without a word"));
  EXPECT_THAT(way.progress.reason(), HasSubstr("asked 3 times"));
}

TEST(TargetProgressTest, WhatWouldBeginTooLateOrOverSomeonesFileIsNotAskedAgain) {
  TargetPlan foreign = Duration();
  foreign.may_ask_again = false;
  for (const TargetPlan& plan : {Timed(10), foreign}) {
    Way way(plan);
    way.Deliver();
    way.To(40);
    EXPECT_EQ(way.progress.state(), TargetState::kRefused);
    EXPECT_THAT(way.progress.reason(), HasSubstr("without a word"));
  }
}

TEST(TargetProgressTest, ALateFetchIsNamedAsTheReason) {
  TargetPlan plan = Timed(8);
  plan.warmup_ns = 5 * kSecond;
  Way way(plan);
  way.To(1.9);
  way.Deliver();
  way.To(30);
  EXPECT_EQ(way.progress.state(), TargetState::kRefused);
  EXPECT_THAT(way.progress.reason(), HasSubstr("6.1 s before the common start"));
  EXPECT_THAT(way.progress.reason(), HasSubstr("longer lead"));
}

TEST(TargetProgressTest, ALateFetchIsNamedWhereTheFileWasMadeAllTheSame) {
  TargetPlan plan = Timed(5);
  plan.warmup_ns = 5 * kSecond;
  Way way(plan);
  way.Deliver();
  way.To(1);
  way.Unfinished(0);  // As PyTorch 2.13 does; it never shows busy.
  way.To(30);
  EXPECT_EQ(way.progress.state(), TargetState::kRefused);
  EXPECT_THAT(way.progress.reason(), HasSubstr("5.0 s before the common start"));
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
  EXPECT_THAT(way.progress.reason(), HasSubstr("stopped or hung"));
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

TEST(TargetProgressTest, ItsOwnProfilerAfterTheDeliveryIsTheReason) {
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
  EXPECT_THAT(way.progress.reason(), HasSubstr("iterations did not come to their end"));
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

TEST(TargetProgressTest, ACancelledTraceIsSeenByAFreeProfilerAndALeftFile) {
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

TEST(TargetProgressTest, ATraceThatWasNeverSeenToRunMayHaveBeenLookedAtTooLate) {
  Way way(Duration());
  way.Deliver();
  way.Unfinished(0);
  way.To(20);
  EXPECT_EQ(way.asked_again, 1);
  EXPECT_EQ(way.progress.state(), TargetState::kQueued);
  EXPECT_FALSE(way.progress.begun_unix_ns());
}

TEST(TargetProgressTest, AFullDiskIsNamed) {
  Way way(Duration());
  way.Deliver();
  way.file = {.kind = Kind::kUnfinished, .size_bytes = 8192, .free_bytes = 0};
  way.To(20);
  EXPECT_EQ(way.progress.state(), TargetState::kRefused);
  EXPECT_THAT(way.progress.reason(), HasSubstr("disk is full"));
}

TEST(TargetProgressTest, AHalfWrittenFileOfAFreeProfilerIsRefused) {
  Way way(Duration());
  way.Deliver();
  way.Unfinished(8192);
  way.To(20);
  EXPECT_EQ(way.progress.state(), TargetState::kRefused);
  EXPECT_THAT(way.progress.reason(), HasSubstr("8192 bytes"));
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
  plan.duration_ns = 3600 * kSecond;
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

TEST(TargetProgressTest, AProcessThatGoesOnGetsItsTimeToBegin) {
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

TEST(TargetProgressTest, AnEndSaysHowFarItWas) {
  const auto reason = [](const std::function<void(Way*)>& drive) {
    Way way(Duration());
    drive(&way);
    way.progress.Ended(Way::At(10));
    EXPECT_EQ(way.progress.state(), TargetState::kDied);
    return way.progress.reason();
  };
  EXPECT_THAT(reason([](Way*) {}), HasSubstr("before it fetched"));
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
  way.progress.Ended(Way::At(1));
  EXPECT_EQ(way.progress.state(), TargetState::kDone);
}

TEST(TargetProgressTest, SomethingElseUnderTheNameIsRefused) {
  Way way(Duration());
  way.Deliver();
  way.file.kind = Kind::kUnusable;
  way.To(1);
  EXPECT_EQ(way.progress.state(), TargetState::kRefused);
}

TEST(TargetProgressTest, AVanishedFolderIsNamed) {
  Way way(Duration());
  way.Deliver();
  way.file.kind = Kind::kNoFolder;
  way.To(20);
  EXPECT_EQ(way.progress.state(), TargetState::kRefused);
  EXPECT_THAT(way.progress.reason(), HasSubstr("folder for its trace is gone"));
}

TEST(TargetProgressTest, FinalStatesStay) {
  Way way(Duration());
  way.progress.Cancel("enough", Way::At(1));
  way.Deliver();
  way.Finished(3);
  way.To(100);
  way.progress.Ended(Way::At(101));
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
