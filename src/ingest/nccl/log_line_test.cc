#include "ingest/nccl/log_line.h"

#include <gmock/gmock.h>

namespace lockstep::ingest {
namespace {

TEST(NcclLogLineTest, AnInfoLineHasHostPidThreadDeviceAndMessage) {
  const auto line = ParseNcclLogLine("node-a:20978:20979 [3] NCCL INFO Using network IB");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->host, "node-a");
  EXPECT_EQ(line->pid, 20978);
  EXPECT_EQ(line->tid, 20979);
  EXPECT_EQ(line->device, 3);
  EXPECT_EQ(line->level, NcclLevel::kInfo);
  EXPECT_EQ(line->message, "Using network IB");
  EXPECT_EQ(line->source, "");
  EXPECT_EQ(line->prefix, "");
}

TEST(NcclLogLineTest, AWarningHasATimeAndAPlaceInTheSource) {
  const auto line = ParseNcclLogLine("[2026-11-21 03:35:23] node-a:1:2 [0] misc/cudawrap.cc:271 (Init) NCCL WARN Cuda");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->level, NcclLevel::kWarn);
  EXPECT_EQ(line->source, "misc/cudawrap.cc:271 (Init)");
  EXPECT_EQ(line->message, "Cuda");
  EXPECT_EQ(PrefixTime(line->prefix), 1795232123000000000);
}

TEST(NcclLogLineTest, ATraceHasMillisecondsAndACallHasNoDevice) {
  const auto trace = ParseNcclLogLine("n:1:2 [0] 12.5 init:33 NCCL TRACE hello");
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->source, "12.5 init:33");
  const auto call = ParseNcclLogLine("node-01:98:99 NCCL CALL ncclGroupStart()");
  ASSERT_TRUE(call);
  EXPECT_EQ(call->level, NcclLevel::kCall);
  EXPECT_EQ(call->device, -1);
  EXPECT_EQ(call->message, "ncclGroupStart()");
}

TEST(NcclLogLineTest, PrefixesOfLaunchersAreKeptApartFromTheHost) {
  const auto mpi = ParseNcclLogLine("[1,12]<stdout>:pod-worker-1:29:29 [4] NCCL INFO x");
  ASSERT_TRUE(mpi);
  EXPECT_EQ(mpi->host, "pod-worker-1");
  EXPECT_EQ(LauncherRank(mpi->prefix), 12);
  const auto srun = ParseNcclLogLine("12: node:29:30 [4] NCCL INFO x");
  ASSERT_TRUE(srun);
  EXPECT_EQ(LauncherRank(srun->prefix), 12);
  const auto rank = ParseNcclLogLine("[rank7]: node:29:30 [4] NCCL INFO x");
  ASSERT_TRUE(rank);
  EXPECT_EQ(LauncherRank(rank->prefix), 7);
  const auto ray = ParseNcclLogLine("(Worker_TP7 pid=481423) node:29:30 [4] NCCL INFO x");
  ASSERT_TRUE(ray);
  EXPECT_EQ(ray->host, "node");
  EXPECT_EQ(LauncherRank(ray->prefix), std::nullopt);
  EXPECT_EQ(LauncherRank("[default3]:"), std::nullopt);
  EXPECT_EQ(LauncherRank("12:30:01 "), std::nullopt);
}

TEST(NcclLogLineTest, WordsThatMerelyNameNcclAreNoLine) {
  EXPECT_FALSE(ParseNcclLogLine("NCCL INFO without an identity"));
  EXPECT_FALSE(ParseNcclLogLine("set NCCL INFO please"));
  EXPECT_FALSE(ParseNcclLogLine("node:1:2 [0] NCCL INFORMATION"));
  EXPECT_FALSE(ParseNcclLogLine(":1:2 [0] NCCL INFO x"));
  EXPECT_FALSE(ParseNcclLogLine("n:99999999999999999999:2 [0] NCCL INFO x"));
  EXPECT_FALSE(ParseNcclLogLine(""));
}

TEST(NcclLogLineTest, ColoursAndCarriageReturnsAreRemoved) {
  std::string storage;
  EXPECT_EQ(WithoutColours("\x1b[1;32mnode:1:2\x1b[0m [0] NCCL INFO x\r", storage), "node:1:2 [0] NCCL INFO x");
  EXPECT_EQ(WithoutColours("plain", storage), "plain");
  EXPECT_EQ(WithoutColours("cut\x1b", storage), "cut");
  EXPECT_EQ(WithoutColours("cut\x1b[12", storage), "cut");
}

TEST(NcclLogLineTest, TimesHaveFractionsAndBounds) {
  EXPECT_EQ(PrefixTime("[2026-11-21T03:35:23.250] "), 1795232123250000000);
  EXPECT_EQ(PrefixTime("[2026-13-21 03:35:23] "), std::nullopt);
  EXPECT_EQ(PrefixTime("[2026-11-21 25:35:23] "), std::nullopt);
  EXPECT_EQ(PrefixTime("no time"), std::nullopt);
}

}  // namespace
}  // namespace lockstep::ingest
