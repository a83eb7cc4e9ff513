#include <gmock/gmock.h>

#include <utility>

#include "analysis/hang/diagnosis.h"
#include "base/nanoseconds.h"

namespace lockstep::hang {
namespace {

using evidence::JobEvidence;
using evidence::RasReport;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

/// An answer of RAS about a communicator of all ranks: AllReduces launched by each.
RasReport Answer(const std::vector<int64_t>& launched, int64_t seconds, std::string hash = "0xae") {
  RasReport report;
  report.source = "ras_n1.json";
  report.collected_unix_ns = (1'700'000'000 + seconds) * kSecondNs;
  evidence::RasCommunicator& communicator = report.communicators.emplace_back();
  communicator.hash = std::move(hash);
  communicator.size = static_cast<int64_t>(launched.size());
  for (size_t rank = 0; rank < launched.size(); ++rank) {
    const auto number = static_cast<int32_t>(rank);
    communicator.ranks.push_back({number, "192.0.2.1", 100 + number, "RUNNING", {{"AllReduce", launched[rank]}}});
  }
  return report;
}

JobEvidence Job(std::vector<RasReport> answers, int32_t world_size = 4) {
  JobEvidence job;
  job.world_size = world_size;
  job.ras = std::move(answers);
  return job;
}

void Lose(RasReport& report, int32_t rank, bool is_dead) {
  evidence::RasCommunicator& communicator = report.communicators.front();
  communicator.ranks[static_cast<size_t>(rank)].operation_counts.clear();
  (is_dead ? communicator.dead_ranks : communicator.missing_ranks).push_back(rank);
}

evidence::RankEvidence& Running(JobEvidence& job, int32_t rank) {
  evidence::RankEvidence& of = job.ranks.emplace_back();
  of.rank = rank;
  of.host = "n1";
  of.pid = 100 + rank;
  of.liveness = evidence::Liveness::kRunning;
  return of;
}

/// A record of one group of all: collectives 1 to `count`, the last one open; made at the times of a slow job.
void Record(evidence::RankEvidence& rank, int32_t world_size, int64_t count) {
  evidence::FlightRecord& record = rank.record.emplace();
  record.version = "2.10";
  record.texts = {"", "nccl:all_reduce"};
  record.size_lists.emplace_back();
  record.stacks.emplace_back();
  evidence::FlightGroup& group = record.groups.emplace_back();
  group.local_id = 0;
  group.name = "0";
  group.description = "default_pg";
  for (int32_t i = 0; i < world_size; ++i) group.ranks.push_back(i);
  for (int64_t i = 1; i <= count; ++i) {
    evidence::FlightEntry& entry = record.entries.emplace_back();
    entry.record_id = i - 1;
    entry.operation = 1;
    entry.collective_sequence = i;
    entry.operation_id = i;
    entry.created_unix_ns = (1'700'000'000 - 100 + i) * kSecondNs;
    const bool is_done = i < 7;
    entry.state = is_done ? evidence::EntryState::kCompleted : evidence::EntryState::kScheduled;
    entry.retired = is_done ? evidence::Tristate::kYes : evidence::Tristate::kNo;
  }
}

TEST(ExplainRasTest, RanksThatStayBehindAreTheCulpritsWhereNothingElseTells) {
  const Diagnosis diagnosis = Diagnose(Job({Answer({7, 7, 6, 7}, 0), Answer({7, 7, 6, 7}, 4)}));
  EXPECT_EQ(diagnosis.verdict.kind, VerdictKind::kStuckOutsideCollective);
  EXPECT_THAT(diagnosis.verdict.culprit_ranks, ElementsAre(2));
  EXPECT_THAT(diagnosis.verdict.victim_ranks, ElementsAre(0, 1, 3));
  EXPECT_LE(diagnosis.verdict.confidence, 0.6);
  EXPECT_THAT(diagnosis.evidence, Contains(Field(&EvidenceItem::fact, HasSubstr("launched 6 of AllReduce"))));
}

TEST(ExplainRasTest, OneAnswerOrCountsThatMoveNameNobody) {
  for (const auto& answers : {std::vector<RasReport>{Answer({7, 7, 6, 7}, 0)},
                              std::vector<RasReport>{Answer({7, 7, 6, 7}, 0), Answer({8, 8, 7, 8}, 4)}}) {
    const Diagnosis diagnosis = Diagnose(Job(answers));
    EXPECT_EQ(diagnosis.verdict.kind, VerdictKind::kUndecidable);
    EXPECT_THAT(diagnosis.verdict.culprit_ranks, IsEmpty());
  }
}

TEST(ExplainRasTest, CountsThatStandStillForLessThanAStepNameNobody) {
  const Diagnosis diagnosis = Diagnose(Job({Answer({7, 7, 6, 7}, 0), Answer({7, 7, 6, 7}, 1)}));
  EXPECT_EQ(diagnosis.verdict.kind, VerdictKind::kUndecidable);
}

TEST(ExplainRasTest, WhoIsLateBecauseItWaitsElsewhereIsNoCulprit) {
  // Rank 1 is late among all and ahead of rank 3 in their own communicator: it waits there.
  RasReport first = Answer({7, 6, 7, 6}, 0);
  evidence::RasCommunicator pair;
  pair.hash = "0xbb";
  pair.size = 2;
  pair.ranks = {{0, "192.0.2.1", 101, "RUNNING", {{"AllGather", 3}}},
                {1, "192.0.2.1", 103, "RUNNING", {{"AllGather", 2}}}};
  first.communicators.push_back(pair);
  RasReport second = first;
  second.collected_unix_ns += 4 * kSecondNs;
  JobEvidence job = Job({first, second});
  for (int32_t rank = 0; rank < 4; ++rank) Running(job, rank);
  EXPECT_THAT(Diagnose(job).verdict.culprit_ranks, ElementsAre(3));
}

TEST(ExplainRasTest, AllWellSaysNothingAndIsCalledNoProof) {
  const Diagnosis diagnosis = Diagnose(Job({Answer({7, 7, 7, 7}, 0), Answer({7, 7, 7, 7}, 4)}));
  EXPECT_EQ(diagnosis.verdict.kind, VerdictKind::kUndecidable);
  EXPECT_THAT(diagnosis.evidence, Contains(Field(&EvidenceItem::fact, HasSubstr("proves nothing"))));
}

TEST(ExplainRasTest, DeadIsACrashAndSilentIsUnreachable) {
  RasReport dead = Answer({7, 7, 7, 7}, 0);
  Lose(dead, 1, true);
  EXPECT_EQ(Diagnose(Job({dead})).verdict.kind, VerdictKind::kCrash);
  RasReport silent = Answer({7, 7, 7, 7}, 0);
  Lose(silent, 1, false);
  const Diagnosis diagnosis = Diagnose(Job({silent}));
  EXPECT_EQ(diagnosis.verdict.kind, VerdictKind::kPeerUnreachable);
  EXPECT_THAT(diagnosis.verdict.culprit_ranks, ElementsAre(1));
}

TEST(ExplainRasTest, ADeadRankWhoseProcessRunsIsUnreachable) {
  RasReport dead = Answer({7, 7, 7, 7}, 0);
  Lose(dead, 1, true);
  JobEvidence job = Job({dead});
  for (int32_t rank = 0; rank < 4; ++rank) Running(job, rank);
  EXPECT_EQ(Diagnose(job).verdict.kind, VerdictKind::kPeerUnreachable);
}

TEST(ExplainRasTest, ASilentRankWithoutAProcessHasEnded) {
  RasReport silent = Answer({7, 7, 7, 7}, 0);
  Lose(silent, 1, false);
  JobEvidence job = Job({silent});
  for (const int32_t rank : {0, 2, 3}) Running(job, rank);
  job.missing.push_back({.rank = 1, .host = "", .what = "process", .reason = "not found", .remedy = ""});
  const Diagnosis diagnosis = Diagnose(job);
  EXPECT_EQ(diagnosis.verdict.kind, VerdictKind::kCrash);
  EXPECT_THAT(diagnosis.verdict.culprit_ranks, ElementsAre(1));
}

TEST(ExplainRasTest, APeerThatAnswersAgainIsNotLost) {
  RasReport silent = Answer({7, 7, 7, 7}, 0);
  Lose(silent, 1, false);
  EXPECT_EQ(Diagnose(Job({silent, Answer({7, 7, 7, 7}, 4)})).verdict.kind, VerdictKind::kUndecidable);
}

TEST(ExplainRasTest, TheTextsUnlistedRanksAreTheOthers) {
  RasReport report;
  report.collected_unix_ns = 1'700'000'000 * kSecondNs;
  evidence::RasCommunicator& communicator = report.communicators.emplace_back();
  communicator.hash = "27a0";
  communicator.size = 4;
  communicator.ranks.push_back({2, "192.0.2.1", 102, "", {{"operations", 6649}}});
  communicator.unlisted_counts = {{3, 6650}};
  RasReport second = report;
  second.collected_unix_ns += 4 * kSecondNs;
  const Diagnosis diagnosis = Diagnose(Job({report, second}));
  EXPECT_THAT(diagnosis.verdict.culprit_ranks, ElementsAre(2));
  EXPECT_THAT(diagnosis.verdict.victim_ranks, ElementsAre(0, 1, 3));
}

TEST(ExplainRasTest, TheRecorderThatSaysOtherwiseIsShownAsContradicted) {
  JobEvidence job = Job({Answer({7, 7, 6, 7}, 0), Answer({7, 7, 6, 7}, 4)});
  job.collected_unix_ns = 1'700'000'010 * kSecondNs;
  for (int32_t rank = 0; rank < 4; ++rank) Record(Running(job, rank), 4, rank == 1 ? 6 : 7);
  const Diagnosis diagnosis = Diagnose(job);
  EXPECT_THAT(diagnosis.verdict.culprit_ranks, ElementsAre(1));
  EXPECT_THAT(diagnosis.evidence,
              Contains(testing::AllOf(Field(&EvidenceItem::source, "ras"), Field(&EvidenceItem::contradicts, true),
                                      Field(&EvidenceItem::fact, HasSubstr("shows rank 1")))));
}

TEST(ExplainRasTest, ASupportedVerdictIsSurerThanAContradictedOne) {
  const auto judge = [](int32_t late, std::vector<RasReport> answers) {
    JobEvidence job = Job(std::move(answers));
    job.collected_unix_ns = 1'700'000'010 * kSecondNs;
    for (int32_t rank = 0; rank < 4; ++rank) Record(Running(job, rank), 4, rank == late ? 6 : 7);
    return Diagnose(job).verdict;
  };
  const std::vector<RasReport> answers = {Answer({7, 7, 6, 7}, 0), Answer({7, 7, 6, 7}, 4)};
  const Verdict alone = judge(2, {});
  EXPECT_THAT(alone.culprit_ranks, ElementsAre(2));
  EXPECT_GT(judge(2, answers).confidence, alone.confidence);
  EXPECT_LT(judge(1, answers).confidence, alone.confidence);
}

}  // namespace
}  // namespace lockstep::hang
