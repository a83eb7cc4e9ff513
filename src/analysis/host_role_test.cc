#include "analysis/host_role.h"

#include <gtest/gtest.h>

namespace lockstep::analysis {
namespace {

TEST(HostRoleTest, NamesSayWhatARangeIs) {
  EXPECT_EQ(HostRoleOf("ProfilerStep#12"), HostRole::kStep);
  EXPECT_EQ(HostRoleOf("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"), HostRole::kDataLoader);
  EXPECT_EQ(HostRoleOf("my dataloader"), HostRole::kDataLoader);
  EXPECT_EQ(HostRoleOf("gloo:all_reduce"), HostRole::kCollective);
  EXPECT_EQ(HostRoleOf("c10d::allreduce_"), HostRole::kCollectiveCall);
  EXPECT_EQ(HostRoleOf("_c10d_functional::wait_tensor"), HostRole::kCollectiveCall);
  EXPECT_EQ(HostRoleOf("record_param_comms"), HostRole::kCollectiveCall);
  EXPECT_EQ(HostRoleOf("aten::mm"), HostRole::kWork);
  EXPECT_EQ(HostRoleOf(""), HostRole::kWork);
}

}  // namespace
}  // namespace lockstep::analysis
