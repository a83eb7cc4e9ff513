#include "analysis/collective_kind.h"

#include <gtest/gtest.h>

namespace lockstep::analysis {
namespace {

TEST(CollectiveKindTest, EverySpellingOfAnOperationIsOneKind) {
  for (const char* name : {"allreduce", "nccl:all_reduce", "c10d::allreduce_", "gloo:all_reduce", "allreduce_coalesced",
                           "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
                           "void vllm::cross_device_reduce_1stage<__half, 4>(...)"}) {
    EXPECT_EQ(ClassifyCollective(name), CollectiveKind::kAllReduce) << name;
  }
  for (const char* name : {"_allgather_base", "nccl:_all_gather_base", "all_gather_into_tensor_coalesced"}) {
    EXPECT_EQ(ClassifyCollective(name), CollectiveKind::kAllGather) << name;
  }
  for (const char* name : {"all_to_allv", "c10d::alltoall_base_", "nccl:all_to_all"}) {
    EXPECT_EQ(ClassifyCollective(name), CollectiveKind::kAllToAll) << name;
  }
  EXPECT_EQ(ClassifyCollective("_reduce_scatter_base"), CollectiveKind::kReduceScatter);
  EXPECT_EQ(ClassifyCollective("ncclDevKernel_Reduce_Sum_f32_RING"), CollectiveKind::kReduce);
  EXPECT_EQ(ClassifyCollective("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"),
            CollectiveKind::kSendReceive);
  EXPECT_EQ(ClassifyCollective("recvAnySource"), CollectiveKind::kReceive);
}

TEST(CollectiveKindTest, NamesWithoutAnOperationAreOther) {
  for (const char* name : {"", "wait", "record_param_comms", "coalesced", "rcclDevKernel_Generic(...)"}) {
    EXPECT_EQ(ClassifyCollective(name), CollectiveKind::kOther) << name;
  }
}

TEST(CollectiveKindTest, OnlyOperationsThatNeedEverybodySynchronise) {
  EXPECT_TRUE(IsSynchronising(CollectiveKind::kAllToAll));
  EXPECT_TRUE(IsSynchronising(CollectiveKind::kBarrier));
  EXPECT_FALSE(IsSynchronising(CollectiveKind::kBroadcast));
  EXPECT_FALSE(IsSynchronising(CollectiveKind::kReduce));
  EXPECT_FALSE(IsSynchronising(CollectiveKind::kSend));
}

}  // namespace
}  // namespace lockstep::analysis
