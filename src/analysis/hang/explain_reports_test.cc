// What PyTorch itself says of ranks, without any record.

#include <gmock/gmock.h>

#include "analysis/hang/diagnosis.h"

namespace lockstep::hang {
namespace {

using evidence::JobEvidence;
using evidence::LogEvent;
using evidence::LogEventKind;
using evidence::NamedCall;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ReportsTest : public testing::Test {
 protected:
  ReportsTest() {
    job_.world_size = 4;
    for (int32_t rank = 0; rank < 4; ++rank) {
      evidence::RankEvidence& made = job_.ranks.emplace_back();
      made.rank = rank;
      made.log_file = "log";
    }
  }
  LogEvent& Say(int32_t rank, LogEventKind kind) {
    LogEvent& event = job_.ranks[static_cast<size_t>(rank)].log.emplace_back();
    event.kind = kind;
    event.rank = rank;
    event.file = "rank" + std::to_string(rank) + ".log";
    return event;
  }
  void Differ(const NamedCall& own, const NamedCall& other) {
    LogEvent& event = Say(own.rank, LogEventKind::kCollectiveMismatch);
    event.sequence = 5;
    event.calls = {own, other};
  }
  void TimeOut(int32_t rank) {
    LogEvent& event = Say(rank, LogEventKind::kWatchdogTimeout);
    event.sequence = 11;
    event.operation = "all_reduce";
  }
  Verdict Judge() const { return Diagnose(job_).verdict; }

  JobEvidence job_;
};

TEST_F(ReportsTest, WhoFailedToPassAMonitoredBarrierIsNamed) {
  Say(0, LogEventKind::kMonitoredBarrier).blamed_ranks = {2};
  Say(1, LogEventKind::kMonitoredBarrier);
  for (const int32_t rank : {0, 1, 3}) job_.ranks[static_cast<size_t>(rank)].exit_status = 1;
  const Verdict verdict = Judge();
  EXPECT_EQ(verdict.kind, VerdictKind::kStuckOutsideCollective);
  EXPECT_THAT(verdict.culprit_ranks, ElementsAre(2));
  EXPECT_THAT(verdict.victim_ranks, ElementsAre(0, 1, 3));
}

TEST_F(ReportsTest, WhoDidNotJoinIsNamedAndWhoJoinedIsNot) {
  LogEvent joined, missed;
  joined.kind = missed.kind = LogEventKind::kDesyncReport;
  joined.waiting_ranks = {0, 1, 3};
  missed.blamed_ranks = {2};
  joined.sequence = missed.sequence = 15;
  job_.log = {joined, missed};
  const Verdict verdict = Judge();
  EXPECT_THAT(verdict.culprit_ranks, ElementsAre(2));
  EXPECT_THAT(verdict.victim_ranks, ElementsAre(0, 1, 3));
  EXPECT_EQ(verdict.sequence, 15);
  EXPECT_THAT(verdict.explanation, HasSubstr("did not join collective #15, in which ranks 0, 1 and 3 wait"));
}

const NamedCall kSum = {0, "all_reduce", "25", "Float"};
NamedCall Of(int32_t rank, NamedCall call) {
  call.rank = rank;
  return call;
}

TEST_F(ReportsTest, OfFingerprintsTheOddOneIsNamed) {
  const NamedCall odd = {2, "broadcast", "1", "Long"};
  for (const int32_t rank : {0, 1, 3}) Differ(Of(rank, kSum), odd);
  Differ(odd, kSum);
  const Verdict verdict = Judge();
  EXPECT_EQ(verdict.kind, VerdictKind::kOperationMismatch);
  EXPECT_THAT(verdict.culprit_ranks, ElementsAre(2));
  EXPECT_EQ(verdict.sequence, 5);
  EXPECT_EQ(verdict.confidence, 0.9);
  EXPECT_THAT(verdict.explanation,
              HasSubstr("Rank 2 called broadcast [1] Long where ranks 0, 1 and 3 called all_reduce"));
}

TEST_F(ReportsTest, OneLogSaysThatThoseBeforeTheFirstThatDiffersAgree) {
  Differ(kSum, {3, "all_reduce", "26", "Float"});
  const Verdict verdict = Judge();
  EXPECT_EQ(verdict.kind, VerdictKind::kSizeMismatch);
  EXPECT_THAT(verdict.culprit_ranks, ElementsAre(3));
}

TEST_F(ReportsTest, AFingerprintThatCannotBeReadStillSaysWhoDiffers) {
  for (const int32_t rank : {0, 2, 3}) Differ(Of(rank, kSum), {1, "", "", ""});
  EXPECT_THAT(Judge().culprit_ranks, ElementsAre(1));
}

TEST_F(ReportsTest, HalfAgainstHalfNamesNobody) {
  const NamedCall other = {0, "all_reduce", "25", "Half"};
  Differ(Of(0, kSum), Of(1, other));
  Differ(Of(1, other), Of(0, kSum));
  Differ(Of(2, kSum), Of(1, other));
  Differ(Of(3, other), Of(0, kSum));
  const Verdict verdict = Judge();
  EXPECT_EQ(verdict.kind, VerdictKind::kUndecidable);
  EXPECT_THAT(verdict.culprit_ranks, IsEmpty());
}

TEST_F(ReportsTest, RanksWithinASmallerGroupAreNotTheJobs) {
  Differ(Of(0, kSum), {1, "broadcast", "1", "Long"});
  job_.ranks[2].log = std::move(job_.ranks[0].log);
  job_.ranks[0].log.clear();
  job_.ranks[2].log[0].rank = 2;
  EXPECT_THAT(Judge().culprit_ranks, IsEmpty());
}

TEST_F(ReportsTest, WhoDoesNotTimeOutWhereAllOthersDoHasNotCome) {
  for (const int32_t rank : {1, 2, 3}) TimeOut(rank);
  const Verdict verdict = Judge();
  EXPECT_THAT(verdict.culprit_ranks, ElementsAre(0));
  EXPECT_THAT(verdict.victim_ranks, ElementsAre(1, 2, 3));
  EXPECT_EQ(verdict.sequence, 11);
  EXPECT_EQ(verdict.confidence, 0.7);
  job_.ranks.erase(job_.ranks.begin());  // It left no log.
  EXPECT_EQ(Judge().confidence, 0.55);
}

TEST_F(ReportsTest, WhomItsOwnWatchdogEndedIsAVictim) {
  for (const int32_t rank : {1, 2, 3}) {
    TimeOut(rank);
    job_.ranks[static_cast<size_t>(rank)].exit_signal = 6;
  }
  job_.ranks[0].exit_signal = 15;  // By the launcher, since the others had failed.
  const Verdict verdict = Judge();
  EXPECT_EQ(verdict.kind, VerdictKind::kStuckOutsideCollective);
  EXPECT_THAT(verdict.culprit_ranks, ElementsAre(0));
}

TEST_F(ReportsTest, ASignalOfAnotherKindIsStillTheCause) {
  for (const int32_t rank : {1, 2, 3}) {
    TimeOut(rank);
    job_.ranks[static_cast<size_t>(rank)].exit_signal = 6;
  }
  job_.ranks[0].exit_signal = 11;
  const Verdict verdict = Judge();
  EXPECT_EQ(verdict.kind, VerdictKind::kCrash);
  EXPECT_THAT(verdict.culprit_ranks, ElementsAre(0));
}

TEST_F(ReportsTest, WatchdogsOfDifferentCollectivesNameNobody) {
  TimeOut(1);
  TimeOut(2);
  job_.ranks[2].log[0].sequence = 10;
  EXPECT_THAT(Judge().culprit_ranks, IsEmpty());
}

}  // namespace
}  // namespace lockstep::hang
