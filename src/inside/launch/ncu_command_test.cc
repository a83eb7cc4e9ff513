#include "inside/launch/ncu_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace lockstep::launch {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr ToolVersion kVersion{2024, 1, 1};

RankIdentity Rank(int32_t rank, int32_t world_size = 8) {
  return {.launcher = Launcher::kTorchrun, .rank = rank, .world_size = world_size};
}

Result<ToolCommand> Make(const NcuRequest& request, const RankIdentity& identity, const std::string& ranks = "0") {
  return MakeNcuCommand(request, kVersion, "out/ncu.rank0", identity, *RankFilter::Parse(ranks));
}

std::vector<std::string> Options(const Result<ToolCommand>& command) {
  std::vector<std::string> words;
  for (const ToolOption& option : command->options) words.push_back(option.text);
  return words;
}

NcuRequest Heavy(std::vector<std::string> functions, int64_t count = 100) {
  NcuRequest request;
  for (std::string& function : functions)
    request.heaviest.push_back(
        {.function = std::move(function), .total_ns = 1, .count_per_rank = count, .ns_of_rank = {{0, 1}, {5, 9}}});
  return request;
}

// What `ncu --help` of 2024.1.1 lists, of what could be sent.
TEST(NcuCommandTest, EveryOptionIsOneThatNcuHas) {
  const std::set<std::string> known = {"--set",         "--kernel-name",  "--kernel-name-base", "--filter-mode",
                                       "--launch-skip", "--launch-count", "--target-processes", "--profile-from-start",
                                       "--nvtx",        "--nvtx-include", "--force-overwrite",  "--export"};
  NcuRequest request = Heavy({"f"});
  request.overwrites = true;
  for (const CaptureRange range : {CaptureRange::kWhole, CaptureRange::kCudaProfiler, CaptureRange::kNvtx}) {
    request.range = range;
    request.nvtx_range = "step@train";
    for (const std::string& option : Options(Make(request, Rank(0)))) EXPECT_THAT(known, Contains(OptionName(option)));
  }
  EXPECT_THAT(Options(Make(request, Rank(0))), Contains("--nvtx-include=train@step/"));
}

TEST(NcuCommandTest, KernelsOfTheAnalysisAndNothingElse) {
  const std::vector<std::string> options = Options(Make(Heavy({"f", "g"}), Rank(0)));
  EXPECT_THAT(options, Contains("--kernel-name=regex:^(f|g)$"));
  EXPECT_THAT(options, Contains("--set=roofline"));
  EXPECT_THAT(options, Contains("--launch-skip=10"));
  EXPECT_THAT(options, Contains("--launch-count=1"));
  EXPECT_THAT(Options(Make(Heavy({"f"}, 6), Rank(0))), Contains("--launch-skip=3"));
  EXPECT_THAT(Options(Make(Heavy({"f"}, 1), Rank(0))), Not(Contains(HasSubstr("--launch-skip"))));
}

TEST(NcuCommandTest, AJobOfSeveralRanksNeedsNames) {
  EXPECT_EQ(Make({}, Rank(0)).error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(Make({}, {}));
  EXPECT_TRUE(Make({}, Rank(0, 1)));
  EXPECT_EQ(Make({.kernels = {"ncclDevKernel_AllReduce"}}, Rank(0)).error().code, ErrorCode::kInvalidArgument);
}

TEST(NcuCommandTest, SeveralRanksShareTheKernels) {
  std::set<std::string> all;
  const NcuRequest request = Heavy({"a", "b", "c", "d", "e"});
  for (const int rank : {0, 3, 6}) {
    const std::vector<std::string> options = Options(Make(request, Rank(rank), "every:3"));
    for (const std::string& option : options) {
      if (option.starts_with("--kernel-name=")) all.insert(option);
    }
  }
  EXPECT_EQ(all, (std::set<std::string>{"--kernel-name=regex:^(a|d)$", "--kernel-name=regex:^(b|e)$",
                                        "--kernel-name=regex:^(c)$"}));
  // More ranks than kernels, and ranks that do not know of each other.
  for (int rank = 0; rank < 8; ++rank)
    EXPECT_THAT(Options(Make(Heavy({"a", "b"}), Rank(rank), "all")),
                Contains(rank % 2 == 0 ? "--kernel-name=regex:^(a)$" : "--kernel-name=regex:^(b)$"));
  RankIdentity local = Rank(4);
  local.local_rank = 0;
  EXPECT_THAT(Options(Make(request, local, "local:0")), Contains("--kernel-name=regex:^(a|b|c|d|e)$"));
}

TEST(NcuCommandTest, WhatMayHangIsSaid) {
  NcuRequest request = Heavy({"f"});
  request.options = {"--replay-mode=application"};
  const auto command = Make(request, Rank(0));
  EXPECT_THAT(command->warnings, Contains(HasSubstr("timeouts")));
  EXPECT_THAT(command->warnings, Contains(HasSubstr("--replay-mode=application runs this rank's program again")));
  EXPECT_THAT(command->warnings, Contains(HasSubstr("rank 5 spent most time")));
  EXPECT_THAT(Make(Heavy({"triton_poi_fused_0"}), Rank(5), "5")->warnings, Contains(HasSubstr("triton_")));
  EXPECT_THAT(Make({.kernels = {"f"}}, {})->warnings, IsEmpty());
  EXPECT_EQ(Make({.kernels = {"f"}, .options = {"-ox"}}, {}).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep::launch
