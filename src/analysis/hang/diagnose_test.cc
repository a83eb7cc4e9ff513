// What Diagnose says of small jobs whose evidence is made by hand, one fact each.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/hang/diagnosis.h"
#include "analysis/hang/job_for_test.h"

namespace lockstep::hang {
namespace {

using evidence::LogEventKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DiagnoseTest : public ::testing::Test {
 protected:
  DiagnoseTest() : world_(job_.World()) {
    for (int i = 0; i < 5; ++i) job_.CallAll(world_);
  }
  Verdict Judge() {
    DiagnoseOptions options;
    options.thread_count = 1;
    return Diagnose(job_.evidence(), options).verdict;
  }
  /// All but one wait since long ago.
  void Hang(int32_t absent) {
    job_.CallAllBut({absent}, world_, kOpen);
    job_.CollectAt(60'000);
  }
  JobForTest job_{4};
  uint32_t world_;
};

TEST_F(DiagnoseTest, ARankThatDoesNotComeIsStuckOutside) {
  Hang(2);
  const Verdict verdict = Judge();
  EXPECT_EQ(verdict.kind, VerdictKind::kStuckOutsideCollective);
  EXPECT_THAT(verdict.culprit_ranks, ElementsAre(2));
  EXPECT_THAT(verdict.victim_ranks, ElementsAre(0, 1, 3));
  EXPECT_EQ(verdict.sequence, 6);
  EXPECT_EQ(verdict.operation, "all_reduce");
}

TEST_F(DiagnoseTest, TheAbsentRanksStackMakesItSurer) {
  Hang(2);
  const double without = Judge().confidence;
  job_.MainThreadIn(2, {{"load", "/home/user/data.py", 7}, kModule});
  const Verdict verdict = Judge();
  EXPECT_GT(verdict.confidence, without);
  ASSERT_FALSE(verdict.sites.empty());
  EXPECT_EQ(verdict.sites.front().role, "culprit");
  EXPECT_EQ(verdict.sites.front().function, "load");
  EXPECT_EQ(verdict.sites.front().line, 7);
}

TEST_F(DiagnoseTest, AWaitOfThisMomentIsTheOrdinaryCourse) {
  job_.CallAllBut({2}, world_, kOpen);
  job_.CollectAt(7);  // A millisecond after the last call.
  EXPECT_EQ(Judge().kind, VerdictKind::kHealthy);
}

/// Everybody has called what nobody completes; the devices of all but `late` have begun it.
JobForTest OpenOnDevices(const std::vector<int32_t>& late) {
  JobForTest job(4);
  const uint32_t world = job.World();
  CallForTest call = {.operation = "nccl:all_reduce"};
  for (int i = 0; i < 5; ++i) job.CallAll(world, call);
  call.done = false;
  for (const int32_t rank : late) job.Call(rank, world, call);
  call.begun = true;
  job.CallAllBut(late, world, call);
  job.CollectAt(60'000);
  return job;
}

TEST(DeviceStallTest, ADeviceThatHasNotBegunWhatAllOthersHaveIsNamed) {
  JobForTest job = OpenOnDevices({2});
  const Diagnosis diagnosis = Diagnose(job.evidence());
  const Verdict& verdict = diagnosis.verdict;
  EXPECT_EQ(verdict.kind, VerdictKind::kDeviceStalled);
  EXPECT_THAT(verdict.culprit_ranks, ElementsAre(2));
  EXPECT_THAT(verdict.victim_ranks, ElementsAre(0, 1, 3));
  EXPECT_EQ(verdict.sequence, 6);
  EXPECT_THAT(verdict.explanation, HasSubstr("did not begin all_reduce #6"));
  ASSERT_FALSE(diagnosis.evidence.empty());
  EXPECT_THAT(diagnosis.evidence.front().fact, HasSubstr("has not begun; on rank 0 it has"));
}

TEST(DeviceStallTest, WhereNobodyIsTimedOrMostHaveNotBegunNobodyIs) {
  EXPECT_THAT(Diagnose(OpenOnDevices({0, 1, 2, 3}).evidence()).verdict.culprit_ranks, IsEmpty());
  EXPECT_THAT(Diagnose(OpenOnDevices({0, 1, 2}).evidence()).verdict.culprit_ranks, IsEmpty());
}

TEST(DeviceStallTest, WhatIsHeldUpByAnEarlierOperationIsNoStall) {
  JobForTest job(3);
  const uint32_t world = job.World();
  const uint32_t pair = job.Group("1", "PAIR", {1, 2});
  const CallForTest done = {.operation = "nccl:all_reduce"};
  CallForTest open = {.operation = "nccl:all_reduce", .done = false};
  for (int i = 0; i < 5; ++i) job.CallAll(world, done);
  open.begun = true;
  job.Call(2, pair, open);  // Rank 1 never comes to it.
  job.Call(0, world, open);
  job.Call(1, world, open);
  open.begun = false;
  job.Call(2, world, open);
  job.CollectAt(60'000);
  EXPECT_NE(Diagnose(job.evidence()).verdict.kind, VerdictKind::kDeviceStalled);
}

TEST_F(DiagnoseTest, AnIdleJobIsHealthy) {
  job_.CollectAt(60'000);
  const Verdict verdict = Judge();
  EXPECT_EQ(verdict.kind, VerdictKind::kHealthy);
  EXPECT_THAT(verdict.culprit_ranks, IsEmpty());
  EXPECT_EQ(verdict.confidence, 0.9);
}

TEST_F(DiagnoseTest, AHealthyJobOfWhichARecordIsMissingIsLessSurelySo) {
  job_.CollectAt(60'000);
  job_.LoseRecord(3);
  const Verdict verdict = Judge();
  EXPECT_EQ(verdict.kind, VerdictKind::kHealthy);
  EXPECT_EQ(verdict.confidence, 0.6);
}

TEST_F(DiagnoseTest, AnOperationInFlightThatNothingDatesIsNotCalledHealthy) {
  job_.CallAll(world_, kOpen);
  const Verdict verdict = Judge();
  EXPECT_EQ(verdict.kind, VerdictKind::kUndecidable);
  EXPECT_LT(verdict.confidence, 0.5);
  EXPECT_THAT(verdict.culprit_ranks, IsEmpty());
  EXPECT_THAT(verdict.explanation, HasSubstr("The records have no time"));
}

TEST_F(DiagnoseTest, AnOperationThatAllCameToAndNobodyEndsIsUndecidable) {
  job_.CallAll(world_, kOpen);
  job_.CollectAt(60'000);
  const Verdict verdict = Judge();
  EXPECT_EQ(verdict.kind, VerdictKind::kUndecidable);
  EXPECT_THAT(verdict.culprit_ranks, IsEmpty());
  EXPECT_THAT(verdict.explanation, HasSubstr("All members of group"));
}

TEST_F(DiagnoseTest, ALogsWordOfTheNetworkDecidesIt) {
  job_.CallAll(world_, kOpen);
  job_.CollectAt(60'000);
  evidence::NcclLogFinding finding;
  finding.kind = "ib_completion";
  finding.severity = "error";
  job_.evidence().nccl.push_back(finding);
  EXPECT_EQ(Judge().kind, VerdictKind::kPeerUnreachable);
}

TEST_F(DiagnoseTest, ALateRankOfAJobThatGoesOnIsAStraggler) {
  for (int64_t round = 0; round < 20; ++round) {
    for (int32_t rank = 0; rank < 4; ++rank) {
      job_.Call(rank, world_, {.created_ms = 1000 + round * 100 + (rank == 1 ? 90 : 10)});
    }
  }
  job_.CollectAt(3000);
  const Verdict verdict = Judge();
  EXPECT_EQ(verdict.kind, VerdictKind::kStraggler);
  EXPECT_THAT(verdict.culprit_ranks, ElementsAre(1));
  EXPECT_THAT(verdict.victim_ranks, ElementsAre(0, 2, 3));
}

TEST_F(DiagnoseTest, ARankThatWasKilledIsACrash) {
  job_.CallAllBut({1}, world_, kOpen);
  job_.CollectAt(60'000);
  job_.LoseRecord(1);
  job_.Rank(1).exit_signal = 9;
  const Verdict verdict = Judge();
  EXPECT_EQ(verdict.kind, VerdictKind::kCrash);
  EXPECT_THAT(verdict.culprit_ranks, ElementsAre(1));
  EXPECT_THAT(verdict.explanation, HasSubstr("SIGKILL"));
  EXPECT_THAT(verdict.victim_ranks, ElementsAre(0, 2, 3));
}

TEST_F(DiagnoseTest, WhoTheLauncherEndedIsNotWhoCrashed) {
  Hang(1);
  job_.Rank(1).exit_signal = 11;
  job_.Rank(3).exit_signal = 15;
  EXPECT_THAT(Judge().culprit_ranks, ElementsAre(1));
}

TEST_F(DiagnoseTest, WhoLostAPeerIsNotWhoCrashed) {
  Hang(1);
  job_.Rank(1).liveness = evidence::Liveness::kGone;
  job_.Log(0, LogEventKind::kPeerReset, "Connection reset by peer");
  job_.Rank(0).liveness = evidence::Liveness::kGone;
  const Verdict verdict = Judge();
  EXPECT_EQ(verdict.kind, VerdictKind::kCrash);
  EXPECT_THAT(verdict.culprit_ranks, ElementsAre(1));
}

TEST_F(DiagnoseTest, OfTwoThatFailedTheFirstIsNamed) {
  Hang(1);
  for (const int32_t rank : {1, 3}) {
    job_.Rank(rank).exit_status = 1;
    job_.Log(rank, LogEventKind::kException, "ValueError: no", rank == 1 ? 5000 : 9000);
  }
  EXPECT_THAT(Judge().culprit_ranks, ElementsAre(1));
}

TEST_F(DiagnoseTest, AnExceptionWithoutMemoryIsToldAsSuch) {
  Hang(1);
  job_.Rank(1).exit_status = 1;
  job_.Log(1, LogEventKind::kException, "torch.OutOfMemoryError: CUDA out of memory");
  EXPECT_THAT(Judge().explanation, HasSubstr("ran out of memory"));
}

TEST_F(DiagnoseTest, AJobOfWhichAllRanksEndedWellHasNoCrash) {
  for (int32_t rank = 0; rank < 4; ++rank) {
    job_.Rank(rank).exit_status = 0;
    job_.Rank(rank).liveness = evidence::Liveness::kGone;
  }
  EXPECT_NE(Judge().kind, VerdictKind::kCrash);
}

TEST_F(DiagnoseTest, ARankThatIsStoppedIsToldToGoOn) {
  Hang(2);
  job_.Rank(2).process.emplace().state = 'T';
  const Verdict verdict = Judge();
  EXPECT_EQ(verdict.kind, VerdictKind::kStuckOutsideCollective);
  ASSERT_FALSE(verdict.advice.empty());
  EXPECT_THAT(verdict.advice.front(), HasSubstr("kill -CONT"));
}

TEST_F(DiagnoseTest, ARankWithoutARecordIsNotCalledStuck) {
  Hang(2);
  job_.LoseRecord(2);
  const Verdict verdict = Judge();
  EXPECT_EQ(verdict.kind, VerdictKind::kPeerUnreachable);
  EXPECT_THAT(verdict.culprit_ranks, ElementsAre(2));
}

TEST_F(DiagnoseTest, TwoWithoutARecordAreNotAccused) {
  job_.CallAllBut({1, 2}, world_, kOpen);
  job_.CollectAt(60'000);
  job_.LoseRecord(1);
  job_.LoseRecord(2);
  const Verdict verdict = Judge();
  EXPECT_EQ(verdict.kind, VerdictKind::kUndecidable);
  EXPECT_THAT(verdict.culprit_ranks, IsEmpty());
}

TEST_F(DiagnoseTest, RanksThatAwaitOneAnotherAreADeadlock) {
  const uint32_t left = job_.Group("1", "left", {0, 1});
  const uint32_t right = job_.Group("2", "right", {0, 1});
  job_.CallAll(left);
  job_.CallAll(right);
  job_.Call(0, left, kOpen);
  job_.Call(1, right, kOpen);
  job_.CollectAt(60'000);
  const Verdict verdict = Judge();
  EXPECT_EQ(verdict.kind, VerdictKind::kDeadlock);
  EXPECT_THAT(verdict.culprit_ranks, ElementsAre(0, 1));
  ASSERT_EQ(verdict.cycle.size(), 2U);
  EXPECT_THAT(verdict.cycle[0].waits_for, ElementsAre(verdict.cycle[1].rank));
  EXPECT_THAT(verdict.cycle[1].waits_for, ElementsAre(verdict.cycle[0].rank));
}

TEST_F(DiagnoseTest, NothingGivesNoVerdict) {
  const evidence::JobEvidence nothing;
  const Diagnosis diagnosis = Diagnose(nothing);
  EXPECT_EQ(diagnosis.verdict.kind, VerdictKind::kUndecidable);
  EXPECT_EQ(diagnosis.verdict.explanation, "There is no evidence to decide from.");
}

TEST_F(DiagnoseTest, NumbersBeyondAllMeasureDoNotOverflow) {
  for (int32_t rank = 0; rank < 4; ++rank) {
    evidence::FlightRecord& record = job_.Record(rank);
    for (size_t i = 0; i < record.entries.size(); ++i) {
      record.entries[i].created_unix_ns = i % 2 == 0 ? 1 : INT64_MAX;
      record.entries[i].collective_sequence = INT64_MAX - static_cast<int64_t>(i) - rank;
      record.entries[i].operation_id = INT64_MAX;
      record.entries[i].retired = rank == 2 ? evidence::Tristate::kNo : evidence::Tristate::kYes;
    }
    record.groups[0].last_enqueued = INT64_MAX;
    record.groups[0].last_completed = rank == 1 ? -1 : INT64_MAX;
    job_.Log(rank, LogEventKind::kException, "RuntimeError: no", 1);
    job_.Rank(rank).log.back().time_unix_ns = INT64_MAX;
  }
  job_.evidence().collected_unix_ns = INT64_MIN + 1;
  Judge();  // Under the sanitizer of undefined behaviour it is that which fails.
}

TEST(DiagnoseKindTest, WithoutPlacesASkippedAndASwappedCollectiveLookAlikeAndTheVerdictSaysSo) {
  JobForTest job(4);
  const uint32_t world = job.World();
  for (int round = 0; round < 3; ++round) {
    job.CallAll(world);
    job.CallAll(world, {.operation = "gloo:broadcast"});
  }
  job.CallAllBut({1}, world, {.done = false});
  job.Call(1, world, {.operation = "gloo:broadcast", .done = false});
  const Verdict verdict = Diagnose(job.evidence()).verdict;
  EXPECT_EQ(verdict.kind, VerdictKind::kSkippedCollective);
  EXPECT_EQ(verdict.culprit_ranks, std::vector<int32_t>{1});
  EXPECT_LE(verdict.confidence, 0.7);
  EXPECT_NE(verdict.explanation.find("another order"), std::string::npos) << verdict.explanation;
}

}  // namespace
}  // namespace lockstep::hang
