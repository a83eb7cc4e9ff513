#include "programs/cli/workload_flag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(WorkloadFlagTest, TheFirstEqualsSignEndsTheKey) {
  const auto workload = ReadWorkloadFlags({"model=gpt2", "optimizer.args=lr=1e-3", "note="});
  ASSERT_TRUE(workload);
  EXPECT_THAT(*workload, ElementsAre(Pair("model", "gpt2"), Pair("note", ""), Pair("optimizer.args", "lr=1e-3")));
}

TEST(WorkloadFlagTest, WhatIsNoKeyWithAValueIsRefused) {
  for (const char* const word : {"", "model", "=gpt2", "a b=c", "k\n=v", "schl\xc3\xbcssel=1", "k=\xff"}) {
    const auto workload = ReadWorkloadFlags({word});
    ASSERT_FALSE(workload) << word;
    EXPECT_EQ(workload.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(workload.error().message, HasSubstr("--workload"));
  }
  EXPECT_FALSE(ReadWorkloadFlags({"k=" + std::string(1001, 'v')}));
  EXPECT_FALSE(ReadWorkloadFlags({std::string(65, 'k') + "=v"}));
}

TEST(WorkloadFlagTest, AKeyIsGivenOnce) {
  const auto workload = ReadWorkloadFlags({"batch=8", "batch=8"});
  ASSERT_FALSE(workload);
  EXPECT_THAT(workload.error().message, HasSubstr("--workload batch: the key is given twice"));
}

}  // namespace
}  // namespace lockstep::cli
