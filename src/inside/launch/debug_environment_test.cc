#include "inside/launch/debug_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::launch {
namespace {

using ::testing::Contains;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

TEST(DebugEnvironmentTest, EachRankHasFilesOfItsOwn) {
  const RankIdentity rank{.launcher = Launcher::kSlurm, .rank = 3, .world_size = 8};
  const auto variables = DebugVariables("/shared/100%", Environment(), rank, "n002");
  EXPECT_THAT(variables, Contains(Pair("NCCL_DEBUG_FILE", "/shared/100%%/nccl.rank3.n002.log")));
  EXPECT_THAT(variables, Contains(Pair("TORCH_FR_DUMP_TEMP_FILE", "/shared/100%/nccl_trace_rank_")));
  EXPECT_THAT(DebugVariables("d", Environment(), {}, "n002"), Contains(Pair("NCCL_DEBUG_FILE", "d/nccl.%h.%p.log")));
}

TEST(DebugEnvironmentTest, WhatTheUserSetStays) {
  const auto variables = DebugVariables("d", Environment::FromEntries({"NCCL_DEBUG=WARN"}), {}, "h");
  EXPECT_THAT(variables, Not(Contains(Key("NCCL_DEBUG"))));
  EXPECT_THAT(variables, Contains(Pair("TORCH_DISTRIBUTED_DEBUG", "DETAIL")));
}

}  // namespace
}  // namespace lockstep::launch
