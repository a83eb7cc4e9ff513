#include "ingest/nccl/ras_report.h"

#include <gmock/gmock.h>

#include <string>

#include "ingest/nccl/ras_problems.h"

namespace lockstep::ingest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr std::string_view kMismatch = R"(NCCL version 2.28.3 compiled with CUDA 12.9

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          2            1          4        4

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2         2         4         4   RUNNING  MISMATCH
    1         2         1         2         2         4   RUNNING      OK

Errors
======

#0-0 (27a0) INCOMPLETE
  Missing communicator data from 1 rank
  The missing rank: 3

Warnings
========

TIMEOUT
  Encountered 2 communication timeouts while gathering communicator data

#0-0 (27a0) MISMATCH
  Communicator ranks have different collective operation counts
  2 ranks have launched up to operation 6650
  1 rank has launched up to operation 6649
  Rank 2 -- GPU 0 managed by process 483072 on node 192.0.2.10
)";

TEST(RasReportTest, TheTextNamesLateAndMissingRanks) {
  const auto report = ReadRasReport(kMismatch);
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_EQ(report->nccl_version, "2.28.3");
  ASSERT_THAT(report->communicators, SizeIs(2));
  const evidence::RasCommunicator& communicator = report->communicators[0];
  EXPECT_EQ(communicator.hash, "27a0");
  EXPECT_EQ(communicator.size, 4);
  EXPECT_THAT(communicator.missing_ranks, ElementsAre(3));
  ASSERT_THAT(communicator.ranks, SizeIs(1));
  EXPECT_EQ(communicator.ranks[0].rank, 2);
  EXPECT_EQ(communicator.ranks[0].pid, 483072);
  EXPECT_EQ(communicator.ranks[0].host, "192.0.2.10");
  EXPECT_THAT(communicator.ranks[0].operation_counts, ElementsAre(Pair("operations", 6649)));
  EXPECT_EQ(report->communicators[1].hash, "group 1");
  EXPECT_THAT(report->errors, ElementsAre(HasSubstr("INCOMPLETE")));
  EXPECT_THAT(report->warnings, ElementsAre(HasSubstr("TIMEOUT: Encountered 2"), HasSubstr("MISMATCH")));
}

TEST(RasReportTest, MonitorModeTellsOfDeadPeersInTextAndJson) {
  const auto text = ReadRasReport(
      "RAS Monitor Mode - watching for peer changes (Ctrl+C to exit)...\n====\n\n"
      " [2025-12-19 13:07:07] PEER_DEAD: Process 7 on node 192.0.2.1 managing GPU 1\n");
  ASSERT_TRUE(text);
  EXPECT_THAT(text->errors, ElementsAre("PEER_DEAD: Process 7 on node 192.0.2.1 managing GPU 1"));
  const std::string event =
      R"({"timestamp": "2025-12-19 13:07:07", "group": "LIFECYCLE", "event": "PEER_DEAD",
          "peer": {"host": "192.0.2.1", "pid": 7, "cuda_devs": [1]}, "details": ""})";
  const auto json = ReadRasReport(event + "\n" + event);
  ASSERT_TRUE(json) << json.error().ToString();
  EXPECT_THAT(json->errors, ElementsAre("PEER_DEAD: process 7 on node 192.0.2.1", HasSubstr("PEER_DEAD")));
}

TEST(RasReportTest, JsonHasEveryRankWithItsCounts) {
  const auto report = ReadRasReport(R"(SERVER PROTOCOL 2
OK
{"nccl_version": "2.29.1", "timestamp": "2025-12-19 13:06:53", "communicators_count": 1, "communicators": [
 {"hash": "0xae94", "size": 3, "ranks_count": 2, "ranks": [
   {"rank": 0, "host": "192.0.2.1", "pid": 10, "status": {"init_state": 0, "async_error": 0},
    "collective_counts": {"Broadcast": 0, "AllReduce": 12}},
   {"rank": 1, "host": "192.0.2.1", "pid": 11, "status": {"init_state": 7},
    "collective_counts": {"Broadcast": 0, "AllReduce": 11}}],
  "missing_ranks": [{"rank": 2, "host": "192.0.2.2", "pid": 12,
    "status": {"unresponsive": true, "considered_dead": true}}]}],
 "ras": {"collection_time_sec": 0.000, "timeouts_count": 1}})");
  ASSERT_TRUE(report) << report.error().ToString();
  ASSERT_THAT(report->communicators, SizeIs(1));
  const evidence::RasCommunicator& communicator = report->communicators[0];
  ASSERT_THAT(communicator.ranks, SizeIs(3));
  EXPECT_EQ(communicator.ranks[0].status, "RUNNING");
  EXPECT_EQ(communicator.ranks[1].status, "INIT");
  EXPECT_EQ(communicator.ranks[2].status, "DEAD");
  EXPECT_THAT(communicator.ranks[0].operation_counts, ElementsAre(Pair("Broadcast", 0), Pair("AllReduce", 12)));
  EXPECT_THAT(communicator.dead_ranks, ElementsAre(2));
  EXPECT_THAT(communicator.missing_ranks, IsEmpty());
  EXPECT_THAT(report->errors, ElementsAre(HasSubstr("1 of 3 ranks")));
  EXPECT_THAT(report->warnings, ElementsAre(HasSubstr("TIMEOUT")));
  EXPECT_EQ(report->collected_unix_ns, 1766149613000000000);
}

evidence::RasReport Counted(int64_t rank_0, int64_t rank_1) {
  evidence::RasReport report;
  evidence::RasCommunicator& communicator = report.communicators.emplace_back();
  communicator.hash = "0xae";
  communicator.size = 2;
  communicator.ranks.push_back({0, "a", 1, "RUNNING", {{"AllReduce", rank_0}}});
  communicator.ranks.push_back({1, "b", 2, "RUNNING", {{"AllReduce", rank_1}}});
  return report;
}

TEST(RasProblemsTest, CountsThatDifferAndStandStillAreAHang) {
  const auto findings = FindRasProblems({Counted(12, 11), Counted(12, 11)});
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].kind, "ras_stuck");
  EXPECT_THAT(findings[0].ranks, ElementsAre(1));
  EXPECT_THAT(findings[0].text, HasSubstr("launched fewer of AllReduce (down to 11) than others (12)"));
}

TEST(RasProblemsTest, CountsThatMoveOrAgreeAreNone) {
  EXPECT_THAT(FindRasProblems({Counted(12, 11), Counted(13, 12)}), IsEmpty());
  EXPECT_THAT(FindRasProblems({Counted(12, 12), Counted(12, 12)}), IsEmpty());
  EXPECT_THAT(FindRasProblems({Counted(12, 11)}), IsEmpty());
}

TEST(RasReportTest, OtherFilesAreRefusedByCode) {
  EXPECT_EQ(ReadRasReport("hello\n").error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(ReadRasReport("").error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(ReadRasReport("{}").error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(ReadRasReport(R"({"communicators": [)").error().code, ErrorCode::kCorruptData);
}

TEST(RasReportTest, AnAnswerIsToldByItsFirstBytes) {
  EXPECT_TRUE(LooksLikeRasReport(kMismatch));
  EXPECT_TRUE(LooksLikeRasReport("{\n  \"nccl_version\": \"2.29.1\", \"communicators_count\": 1"));
  EXPECT_FALSE(LooksLikeRasReport("{\"nccl_version\": \"2.29.1\", \"entries\": []}"));
  EXPECT_FALSE(LooksLikeRasReport("hello"));
}

}  // namespace
}  // namespace lockstep::ingest
