#include "analysis/hang/record_age.h"

#include <gtest/gtest.h>

#include "analysis/hang/diagnosis.h"
#include "analysis/hang/job_for_test.h"

namespace lockstep::hang {
namespace {

/// Three ranks that called `calls` times, two of them once more, which is open.
JobForTest OneMissing(int calls) {
  JobForTest job(3);
  const uint32_t world = job.World();
  for (int i = 0; i < calls; ++i) {
    job.CallAll(world);
  }
  job.CallAllBut({2}, world, {.done = false, .created_ms = 100});
  return job;
}

void MadeAt(JobForTest& job, int32_t rank, int64_t milliseconds) {
  job.Rank(rank).record_unix_ns = JobForTest::kBeginNs + milliseconds * kMillisecondNs;
}

TEST(RecordAgeTest, AWaitThatIsYoungInItsOwnRanksRecordIsNoHang) {
  JobForTest job = OneMissing(4);
  job.CollectAt(60'000);  // Long after: the last rank was slow to answer.
  EXPECT_EQ(VerdictKind::kStuckOutsideCollective, Diagnose(job.evidence()).verdict.kind);
  for (const int32_t rank : {0, 1, 2}) {
    MadeAt(job, rank, 150);
  }
  EXPECT_EQ(VerdictKind::kHealthy, Diagnose(job.evidence()).verdict.kind);
}

TEST(RecordAgeTest, AnOldWaitInItsOwnRanksRecordIsAHang) {
  JobForTest job = OneMissing(4);
  job.CollectAt(60'000);
  for (const int32_t rank : {0, 1, 2}) {
    MadeAt(job, rank, 50'000);
  }
  const Verdict verdict = Diagnose(job.evidence()).verdict;
  EXPECT_EQ(VerdictKind::kStuckOutsideCollective, verdict.kind);
  EXPECT_EQ(std::vector<int32_t>{2}, verdict.culprit_ranks);
}

TEST(RecordAgeTest, ARecordThatIsOlderThanACallDoesNotSayThatItsRankStaysAway) {
  JobForTest job = OneMissing(4);
  job.CollectAt(60'000);
  MadeAt(job, 0, 50'000);
  MadeAt(job, 1, 50'000);
  MadeAt(job, 2, 90);  // Before the others called.
  const Verdict verdict = Diagnose(job.evidence()).verdict;
  EXPECT_TRUE(verdict.culprit_ranks.empty() || verdict.confidence < 0.5) << verdict.explanation;
}

TEST(RecordAgeTest, WhatCompletedElsewhereShowsThatTheJobWentOn) {
  JobForTest job(3);
  const uint32_t world = job.World();
  for (int i = 0; i < 4; ++i) {
    job.CallAll(world);
  }
  for (int i = 0; i < 3; ++i) {
    job.CallAllBut({2}, world);
  }
  const JobView view = job.View();
  EXPECT_TRUE(WentOnMeanwhile(view, ReadConditions(view)));
}

TEST(RecordAgeTest, OneOperationAheadMayBeADeviceThatStalls) {
  JobForTest job(2);
  const uint32_t world = job.World();
  job.CallAll(world, {.operation = "nccl:all_reduce"});
  job.Call(0, world, {.operation = "nccl:all_reduce"});
  job.Call(1, world, {.operation = "nccl:all_reduce", .done = false});
  const JobView view = job.View();
  EXPECT_FALSE(WentOnMeanwhile(view, ReadConditions(view)));
}

TEST(RecordAgeTest, ABroadcastsRootGoesOnAlone) {
  JobForTest job(2);
  const uint32_t world = job.World();
  job.CallAll(world);
  for (int i = 0; i < 3; ++i) {
    job.Call(0, world, {.operation = "gloo:broadcast"});
  }
  const JobView view = job.View();
  EXPECT_FALSE(WentOnMeanwhile(view, ReadConditions(view)));
}

TEST(RecordAgeTest, FailedOperationsAreMarkedCompleteAndProveNothing) {
  JobForTest job(2);
  const uint32_t world = job.World();
  job.CallAll(world);
  for (int i = 0; i < 3; ++i) {
    job.Call(0, world);
  }
  job.Log(0, evidence::LogEventKind::kPeerReset, "Connection reset by peer");
  const JobView view = job.View();
  EXPECT_FALSE(WentOnMeanwhile(view, ReadConditions(view)));
}

}  // namespace
}  // namespace lockstep::hang
