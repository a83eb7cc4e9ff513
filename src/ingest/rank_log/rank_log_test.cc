#include "ingest/rank_log/rank_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/testing/checkout.h"

namespace lockstep::ingest {
namespace {

using evidence::LogEvent;
using evidence::LogEventKind;
using testing::ElementsAre;

LogEvent Only(std::string_view text) {
  const RankLogEvents log = ReadRankLog(text, "log");
  EXPECT_EQ(log.events.size(), 1U) << text;
  return log.events.empty() ? LogEvent() : log.events.front();
}

TEST(RankLogTest, WatchdogsOfAllVersionsNameGroupSequenceAndOperation) {
  const LogEvent event = Only(
      "[rank3]:[E1121 03:35:23.123456789 ProcessGroupNCCL.cpp:632] [PG ID 2 PG GUID 5(TP) Rank 1] Watchdog caught "
      "collective operation timeout: WorkNCCL(SeqNum=118, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) "
      "ran for 600008 milliseconds before timing out.");
  EXPECT_EQ(event.kind, LogEventKind::kWatchdogTimeout);
  EXPECT_EQ(event.rank, 3);
  EXPECT_EQ(event.group, "5");
  EXPECT_EQ(event.sequence, 118);
  EXPECT_EQ(event.operation, "all_reduce");
  EXPECT_EQ(event.time_unix_ns, std::nullopt) << "glog tells no year";
  const LogEvent old =
      Only("[Rank 118] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=BROADCAST, x");
  EXPECT_EQ(old.rank, 118);
  EXPECT_EQ(old.operation, "broadcast");
  const LogEvent status = Only(
      "[PG ID 0 PG GUID 0(default_pg) Rank 118]  failure detected by watchdog at work sequence id: 12 PG status: last "
      "enqueued work: 12, last completed work: 11");
  EXPECT_EQ(status.kind, LogEventKind::kWatchdogStatus);
  EXPECT_EQ(status.sequence, 12);
  EXPECT_EQ(status.rank, 118);
  EXPECT_EQ(Only("[PG 1 Rank 0] Timeout at NCCL work: 5, last enqueued NCCL work: 5, last completed").sequence, 5);
}

TEST(RankLogTest, GroupRanksOfSubgroupsAreNoRanksOfTheJob) {
  EXPECT_EQ(Only("[PG ID 2 PG GUID 5(TP) Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, "
                 "OpType=BARRIER, x")
                .rank,
            std::nullopt);
}

TEST(RankLogTest, GlogsTimesTakeTheYearOfTheLog) {
  const RankLogEvents log = ReadRankLog(
      "2026-11-21 03:35:20,500 - trainer - ERROR - first\n[rank0]:[E1121 03:35:23.5 a.cpp:1] second\n", "log");
  ASSERT_EQ(log.events.size(), 2U);
  EXPECT_EQ(log.events[0].time_unix_ns, 1'795'232'120'500'000'000);
  EXPECT_EQ(log.events[1].time_unix_ns, 1'795'232'123'500'000'000);
}

TEST(RankLogTest, PyTorchsHeadsHaveMonthsOfOneDigit) {
  const RankLogEvents log = ReadRankLog(
      "2026-05-07 16:21:20,000 - trainer - ERROR - first\n[rank0]:[E507 16:21:21.5 a.cpp:1] second\n", "log");
  ASSERT_EQ(log.events.size(), 2U);
  EXPECT_EQ(*log.events[1].time_unix_ns - *log.events[0].time_unix_ns, 1'500'000'000);
}

TEST(RankLogTest, DesyncReportsBlameRanks) {
  const LogEvent event = Only("   - [1, 3-4] finished collective #14, but didn't join collective #15 (count from 1)");
  EXPECT_EQ(event.kind, LogEventKind::kDesyncReport);
  EXPECT_EQ(event.sequence, 15);
  EXPECT_THAT(event.blamed_ranks, ElementsAre(1, 3, 4));
}

TEST(RankLogTest, DesyncReportsTellWhoWaits) {
  const LogEvent event = Only("   - [0, 2] joined but didn't finish collective #15 (count from 1)");
  EXPECT_EQ(event.sequence, 15);
  EXPECT_TRUE(event.blamed_ranks.empty());
  EXPECT_THAT(event.waiting_ranks, ElementsAre(0, 2));
}

TEST(RankLogTest, GlooTellsPeers) {
  const LogEvent reset = Only(
      "[rank0]: RuntimeError: [./gloo/transport/tcp/pair.cc:538] Read error [127.0.0.1]:26510: Connection reset by "
      "peer");
  EXPECT_EQ(reset.kind, LogEventKind::kPeerReset);
  EXPECT_EQ(reset.peer, "127.0.0.1:26510");
  const LogEvent closed = Only("[pair.cc:547] Connection closed by peer [fe80::1]:26830");
  EXPECT_EQ(closed.kind, LogEventKind::kPeerClosed);
  EXPECT_EQ(closed.peer, "fe80::1:26830");
  EXPECT_EQ(Only("Timed out waiting 8000ms for recv operation to complete").kind, LogEventKind::kTransportTimeout);
  EXPECT_EQ(Only("what():  op.preamble.length <= op.nbytes. 4100 vs 4096. Received data size doesn't match expected "
                 "size. Is there a distributed collective mismatch in your code?")
                .kind,
            LogEventKind::kSizeMismatch);
}

TEST(RankLogTest, FingerprintsCountFromZeroAndAreReportedFromOne) {
  const LogEvent event = Only(
      "[rank0]: RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: "
      "CollectiveFingerPrint(SequenceNumber=4, OpType=ALLREDUCE, TensorShape=[4096], TensorDtypes=Float), but Rank 1 "
      "is "
      "running collective: CollectiveFingerPrint(SequenceNumber=4OpType=GATHER).");
  EXPECT_EQ(event.kind, LogEventKind::kCollectiveMismatch);
  EXPECT_EQ(event.sequence, 5);
  EXPECT_EQ(event.operation, "all_reduce");
  EXPECT_THAT(event.blamed_ranks, ElementsAre(1));
  ASSERT_EQ(event.calls.size(), 2U);
  EXPECT_EQ(event.calls[0].rank, 0);
  EXPECT_EQ(event.calls[0].operation, "all_reduce");
  EXPECT_EQ(event.calls[0].shape, "4096");
  EXPECT_EQ(event.calls[0].dtype, "Float");
  EXPECT_EQ(event.calls[1].rank, 1);
  EXPECT_EQ(event.calls[1].operation, "") << "written wrongly";
}

TEST(RankLogTest, MonitoredBarriersNameWhoFailed) {
  EXPECT_THAT(Only("[Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 8000 ms").blamed_ranks, ElementsAre(1, 3));
  EXPECT_THAT(Only("[Rank 0]: Rank 2 failed to pass monitoredBarrier in 8000 ms").blamed_ranks, ElementsAre(2));
  const LogEvent other = Only(
      "Rank 1 successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. "
      "Please check rank 0 logs for faulty rank.");
  EXPECT_EQ(other.kind, LogEventKind::kMonitoredBarrier);
  EXPECT_TRUE(other.blamed_ranks.empty());
  EXPECT_EQ(other.rank, 1);
}

TEST(RankLogTest, StoresTimeOutAndTellTheWorldSize) {
  const RankLogEvents log =
      ReadRankLog("Timed out after 301 seconds waiting for clients. 3/4 clients joined.\n", "log");
  ASSERT_EQ(log.events.size(), 1U);
  EXPECT_EQ(log.events[0].kind, LogEventKind::kStoreTimeout);
  EXPECT_EQ(log.world_size, 4);
  EXPECT_EQ(Only("The client socket has timed out after 60000ms while trying to connect to (node-a, 29500).").peer,
            "node-a:29500");
}

TEST(RankLogTest, ATracebackIsItsLastLineAndTheUsersInnermostFrame) {
  const RankLogEvents log = ReadRankLog(
      "[rank0]: Traceback (most recent call last):\n"
      "[rank1]: Traceback (most recent call last):\n"
      "[rank0]:   File \"/home/user/train.py\", line 99, in <module>\n"
      "[rank1]:   File \"/home/user/train.py\", line 12, in other\n"
      "[rank0]:   File \"/home/user/train.py\", line 67, in backward\n"
      "[rank0]:     dist.all_reduce(x)\n"
      "[rank0]:     ~~~~^^^^^\n"
      "[rank0]:   File \"/usr/lib/python3/dist-packages/torch/x.py\", line 83, in wrapper\n"
      "[rank0]: ValueError: bad loss\n"
      "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n",
      "log");
  ASSERT_EQ(log.events.size(), 2U);
  EXPECT_EQ(log.events[0].kind, LogEventKind::kException);
  EXPECT_EQ(log.events[0].rank, 0);
  EXPECT_EQ(log.events[0].frame.line, 67);
  EXPECT_EQ(log.events[0].frame.function, "backward");
  EXPECT_EQ(log.events[0].text, "[rank0]: ValueError: bad loss");
  EXPECT_EQ(log.events[1].kind, LogEventKind::kOutOfMemory);
  EXPECT_EQ(log.events[1].frame.function, "other");
  EXPECT_THAT(log.prefixed_ranks, ElementsAre(0, 1));
}

TEST(RankLogTest, TorchrunsSummaryTellsWhoDiedOnce) {
  const RankLogEvents log = ReadRankLog(
      "E1121 03:35:23.1 1 torch/distributed/elastic/x.py:826] failed (exitcode: -9) local_rank: 1 (pid: 7) of binary: "
      "p\n"
      "Traceback (most recent call last):\n"
      "  File \"/usr/local/bin/torchrun\", line 8, in <module>\n"
      "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
      "============================================================\n"
      "train.py FAILED\n"
      "------------------------------------------------------------\n"
      "Root Cause (first observed failure):\n"
      "[0]:\n"
      "  time      : 2026-11-21_03:35:23\n"
      "  host      : node-a\n"
      "  rank      : 3 (local_rank: 1)\n"
      "  exitcode  : -9 (pid: 7)\n"
      "  error_file: <N/A>\n"
      "  traceback : Signal 9 (SIGKILL) received by PID 7\n",
      "log");
  ASSERT_EQ(log.events.size(), 2U);
  EXPECT_EQ(log.events[0].signal, 9);
  EXPECT_EQ(log.events[0].rank, std::nullopt) << "a local rank is none of the job's";
  EXPECT_EQ(log.events[1].kind, LogEventKind::kSignal);
  EXPECT_EQ(log.events[1].rank, 3);
  EXPECT_EQ(log.events[1].signal, 9);
  EXPECT_EQ(log.events[1].time_unix_ns, 1'795'232'123'000'000'000);
}

TEST(RankLogTest, LaunchersTellSignals) {
  struct Case {
    const char* line;
    std::optional<int32_t> rank;
    int signal;
  };
  const Case cases[] = {
      {"mpirun noticed that process rank 3 with PID 12 on node a exited on signal 11 (Segmentation fault).", 3, 11},
      {"srun: error: node-a: task 3: Killed", 3, 9},
      {"srun: error: node-a: task 2: Exited with exit code 137", 2, 9},
      {"torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL", 1, 9},
      {"Command '['python']' died with <Signals.SIGSEGV: 11>.", std::nullopt, 11},
      {"run.sh: line 5:  1234 Killed                  python train.py", std::nullopt, 9},
      {"Segmentation fault (core dumped)", std::nullopt, 11},
      {"Fatal Python error: Aborted", std::nullopt, 6},
      {"[node-a:12] Signal: Bus error (7)", std::nullopt, 7},
  };
  for (const Case& one : cases) {
    const LogEvent event = Only(one.line);
    EXPECT_EQ(event.kind, LogEventKind::kSignal) << one.line;
    EXPECT_EQ(event.signal, one.signal) << one.line;
    EXPECT_EQ(event.rank, one.rank) << one.line;
  }
}

TEST(RankLogTest, OtherKindsAreTold) {
  EXPECT_EQ(Only("slurmstepd: error: Detected 1 oom_kill event in StepId=7.0").kind, LogEventKind::kOutOfMemory);
  EXPECT_EQ(Only("NVRM: Xid (PCI:0000:a0:1c): 79, pid=1, GPU has fallen off the bus.").kind,
            LogEventKind::kDeviceError);
  EXPECT_EQ(Only("a:1:2 [0] misc/x.cc:271 NCCL WARN Cuda failure 'x'").kind, LogEventKind::kNcclError);
  EXPECT_EQ(Only("[rank1]:[F1121 03:35:23.1 x.cpp:1] ProcessGroupNCCL's watchdog got stuck for 480 seconds").kind,
            LogEventKind::kWatchdogStuck);
  EXPECT_EQ(Only("[rank1]:[E1121 03:35:23.1 x.cpp:1] something else").kind, LogEventKind::kOtherError);
}

TEST(RankLogTest, PrefixesOfLaunchersTellRanks) {
  EXPECT_EQ(Only("[1,3]<stderr>:CUDA error: unspecified launch failure").rank, 3);
  EXPECT_EQ(Only("\x1b[31m 12: CUDA error: x\x1b[0m\r\n").rank, 12);
  EXPECT_EQ(Only("[default3]:[rank7]: CUDA error: x").rank, 7);
  EXPECT_EQ(Only("[default3]:CUDA error: x").rank, std::nullopt);
}

TEST(RankLogTest, ANumberAndAColonAreNoRankWhereMostLinesHaveNone) {
  const RankLogEvents log = ReadRankLog("line\nmore\n12: CUDA error: x\nend\n", "log");
  ASSERT_EQ(log.events.size(), 1U);
  EXPECT_EQ(log.events[0].rank, std::nullopt);
  EXPECT_TRUE(log.prefixed_ranks.empty());
}

TEST(RankLogTest, ConsequencesAndPlainTextAreNoEvents) {
  EXPECT_EQ(ReadRankLog("step 1 loss 2.0\nepoch done\nerror rate 0.1\n", "log").events.size(), 0U);
  EXPECT_EQ(ReadRankLog("[rank1]:[E1121 03:35:23.1 x.cpp:1] To avoid data inconsistency, we are taking the entire "
                        "process down.\n",
                        "log")
                .events.size(),
            0U);
}

TEST(RankLogTest, AFloodKeepsTheFirstAndTheLast) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "CUDA error: number " + std::to_string(i) + "\n";
  const RankLogEvents log = ReadRankLog(text, "log");
  EXPECT_LE(log.events.size(), 1'000U);
  EXPECT_EQ(log.events.front().line, 1U);
  EXPECT_EQ(log.events.back().line, 10'000U);
  EXPECT_EQ(log.events.size() + log.dropped_count, 10'000U);
}

TEST(RankLogTest, AnyBytesAreALog) {
  std::string bytes;
  for (int i = 0; i < 4'096; ++i) bytes += static_cast<char>(i * 37 + i / 256);
  EXPECT_GT(ReadRankLog(bytes, "log").line_count, 0U);
  EXPECT_EQ(ReadRankLog("", "log").line_count, 0U);
}

TEST(RankLogTest, SharedLogsTellTheWorldSizeAndTheCrash) {
  const std::filesystem::path root = SharedData();
  const std::filesystem::path folder = root / "flight_recorder" / "gloo_torch_2_14" / "crash_4";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "the shared data are absent";
  std::stringstream bytes;
  bytes << std::ifstream(folder / "log_0.txt").rdbuf();
  const RankLogEvents log = ReadRankLog(bytes.str(), "log_0.txt");
  EXPECT_EQ(log.world_size, 4);
  ASSERT_EQ(log.events.size(), 1U);
  EXPECT_EQ(log.events[0].kind, LogEventKind::kPeerReset);
  EXPECT_EQ(log.events[0].frame.line, 67);
}

}  // namespace
}  // namespace lockstep::ingest
