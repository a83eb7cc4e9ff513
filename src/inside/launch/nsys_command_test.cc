#include "inside/launch/nsys_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace lockstep::launch {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

const RankIdentity kTorchrunRank{.launcher = Launcher::kTorchrun, .rank = 3, .world_size = 8};
const RankIdentity kMpiRank{.launcher = Launcher::kOpenMpi, .rank = 3, .world_size = 8};
constexpr ToolVersion kOld{2022, 4, 2};
constexpr ToolVersion kMiddle{2023, 4, 4};
constexpr ToolVersion kNew{2026, 2, 1};

Result<ToolCommand> Make(const NsysRequest& request, const ToolVersion& version,
                         const RankIdentity& identity = kTorchrunRank, const std::string& ranks = "all") {
  return MakeNsysCommand(request, version, "out/nsys.rank3", identity, *RankFilter::Parse(ranks));
}

std::vector<std::string> Options(const ToolCommand& command) {
  std::vector<std::string> words;
  for (const ToolOption& option : command.options) words.push_back(option.text);
  return words;
}

NsysRequest Everything() {
  return {.range = CaptureRange::kNvtx,
          .nvtx_range = "step 5",
          .range_count = 3,
          .prints_statistics = true,
          .exports_sqlite = true,
          .overwrites = true};
}

// What `nsys profile` of these versions has, of what could be sent; values by the documentation's table.
TEST(NsysCommandTest, EveryOptionIsOneThatTheVersionHas) {
  const std::set<std::string> known = {"--trace",
                                       "--sample",
                                       "--cpuctxsw",
                                       "--cuda-graph-trace",
                                       "--capture-range",
                                       "--nvtx-capture",
                                       "--capture-range-end",
                                       "--delay",
                                       "--duration",
                                       "--cuda-flush-interval",
                                       "--mpi-impl",
                                       "--kill",
                                       "--export",
                                       "--stats",
                                       "--force-overwrite",
                                       "--output"};
  const NsysRequest timed{.delay_s = 5, .duration_s = 60};
  for (const ToolVersion& version : {kOld, kMiddle, kNew}) {
    for (const NsysRequest& request : {NsysRequest{}, Everything(), timed}) {
      const auto command = Make(request, version, kMpiRank, "local:0");
      ASSERT_TRUE(command);
      for (const std::string& option : Options(*command)) EXPECT_THAT(known, Contains(OptionName(option)));
      EXPECT_THAT(command->warnings, IsEmpty());
    }
  }
}

TEST(NsysCommandTest, ACaptureRangeDoesNotEndTheJob) {
  const ToolCommand range = Make({.range = CaptureRange::kCudaProfiler}, kMiddle).value();
  EXPECT_THAT(Options(range), Contains("--capture-range=cudaProfilerApi"));
  EXPECT_THAT(Options(range), Contains("--capture-range-end=stop"));
  EXPECT_THAT(Options(range), Contains("--kill=none"));
  EXPECT_THAT(Options(Make({.range = CaptureRange::kCudaProfiler, .range_count = 3}, kMiddle).value()),
              Contains("--capture-range-end=repeat:3"));
  EXPECT_THAT(Options(Make({.duration_s = 10}, kMiddle).value()), Contains("--kill=none"));
}

TEST(NsysCommandTest, AnNvtxRangeMatchesStringsThatAreNotRegistered) {
  const ToolCommand command = Make({.range = CaptureRange::kNvtx, .nvtx_range = "step 5"}, kMiddle).value();
  EXPECT_THAT(Options(command), Contains("--nvtx-capture=step 5@*"));
  EXPECT_THAT(command.environment, Contains(Pair("NSYS_NVTX_PROFILER_REGISTER_ONLY", "0")));
  EXPECT_THAT(Options(Make({.range = CaptureRange::kNvtx, .nvtx_range = "step@train"}, kMiddle).value()),
              Contains("--nvtx-capture=step@train"));
}

TEST(NsysCommandTest, SomeRanksOfMpiGetTheirTeams) {
  EXPECT_THAT(Make({}, kMiddle, kMpiRank, "local:0")->environment,
              Contains(Pair("NSYS_MPI_STORE_TEAMS_PER_RANK", "1")));
  EXPECT_THAT(Make({}, kMiddle, kMpiRank, "all")->environment, IsEmpty());
  EXPECT_THAT(Make({}, kMiddle, kTorchrunRank, "local:0")->environment, IsEmpty());
  EXPECT_THAT(Options(*Make({}, kMiddle, kMpiRank)), Contains(HasSubstr(",mpi,ucx")));
  EXPECT_THAT(Options(*Make({}, kMiddle, kMpiRank)), Contains("--mpi-impl=openmpi"));
  EXPECT_THAT(Options(*Make({}, kMiddle)), Contains("--trace=cuda,nvtx,osrt,cublas,cudnn"));
}

TEST(NsysCommandTest, TracesThatTheVersionLacksAreRefused) {
  const auto refused = Make({.traces = {"cuda-sw", "nvtx"}}, kMiddle);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(Make({.traces = {"cuda-sw", "nvtx"}}, kNew));
}

TEST(NsysCommandTest, TheUsersOwnOptionsCount) {
  for (const char* option : {"--sample=process-tree", "-s=process-tree", "-sprocess-tree"}) {
    const std::vector<std::string> words = Options(Make({.options = {option}}, kMiddle).value());
    EXPECT_THAT(words, Not(Contains("--sample=none")));
    EXPECT_EQ(words.back(), option);
  }
  for (const char* option : {"-o", "-ox", "--output=x", "--session-new=x"}) {
    EXPECT_EQ(Make({.options = {option}}, kMiddle).error().code, ErrorCode::kInvalidArgument) << option;
  }
}

TEST(NsysCommandTest, PercentSignsInPathsAreNoPatterns) {
  const auto command = MakeNsysCommand({}, kMiddle, "100%/nsys", kTorchrunRank, *RankFilter::Parse("all"));
  EXPECT_THAT(Options(*command), Contains("--output=100%%/nsys"));
}

TEST(NsysCommandTest, WhatIsDoubtfulIsSaid) {
  EXPECT_THAT(Make({.duration_s = 301}, kMiddle)->warnings, SizeIs(1));
  EXPECT_THAT(Make({}, {2020, 1, 0})->warnings, SizeIs(1));
  EXPECT_THAT(Make({}, kMiddle)->unset, Contains("KINETO_USE_DAEMON"));
}

}  // namespace
}  // namespace lockstep::launch
