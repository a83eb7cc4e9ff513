#include "analysis/kernel_kind.h"

#include <gtest/gtest.h>

#include "analysis/testing/trace_builder.h"

namespace lockstep::analysis {
namespace {

TEST(KernelKindTest, LibraryKernelsAreCommunicationInAnyCase) {
  EXPECT_TRUE(IsCommunicationKernelName("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"));
  EXPECT_TRUE(IsCommunicationKernelName("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"));
  EXPECT_TRUE(IsCommunicationKernelName("rcclGenericKernel"));
  EXPECT_TRUE(IsCommunicationKernelName("oneCCL_allreduce"));
  EXPECT_TRUE(IsCommunicationKernelName("void nvshmemi_transfer<int>"));
  EXPECT_TRUE(IsCommunicationKernelName("void deep_ep::internode::dispatch<false>(int4*)"));
}

TEST(KernelKindTest, CollectivesOfEnginesAreCommunication) {
  EXPECT_TRUE(IsCommunicationKernelName("void vllm::cross_device_reduce_1stage<__half, 8>(vllm::RankData*)"));
  EXPECT_TRUE(IsCommunicationKernelName("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>()"));
  EXPECT_TRUE(IsCommunicationKernelName("void tensorrt_llm::kernels::twoShotAllReduceKernel<float>()"));
  EXPECT_TRUE(IsCommunicationKernelName("allreduce_fusion_kernel_1stage"));
}

TEST(KernelKindTest, ReductionsWithinADeviceAreCompute) {
  EXPECT_FALSE(IsCommunicationKernelName("void softmax<BlockAllReduce<float>>(float*)"));
  EXPECT_FALSE(IsCommunicationKernelName("warp_all_reduce_sum"));
  EXPECT_FALSE(IsCommunicationKernelName("void at::native::reduce_kernel<512, 1>()"));
  EXPECT_FALSE(IsCommunicationKernelName("hipBLASLt_gemm"));
  EXPECT_FALSE(IsCommunicationKernelName(""));
}

TEST(KernelKindTest, CpuCollectivesAreKnownByTheirBackend) {
  EXPECT_TRUE(IsCpuCollectiveName("gloo:all_reduce"));
  EXPECT_TRUE(IsCpuCollectiveName("mpi:broadcast"));
  EXPECT_FALSE(IsCpuCollectiveName("nccl:all_reduce"));
  EXPECT_FALSE(IsCpuCollectiveName("c10d::allreduce_"));
}

TEST(KernelKindTest, OnlyNamesSeenOnDevicesAreClassified) {
  testing::RunBuilder job;
  job.Rank(0).Kernel(7, "ncclKernel", 0, 1).Op(1, "nccl:all_reduce", 0, 1);
  const model::Run run = job.Build();
  const std::vector<bool> is_communication = ClassifyCommunication(run);
  NameId kernel;
  NameId annotation;
  ASSERT_TRUE(run.names.Find("ncclKernel", &kernel));
  ASSERT_TRUE(run.names.Find("nccl:all_reduce", &annotation));
  EXPECT_TRUE(is_communication[kernel.value]);
  EXPECT_FALSE(is_communication[annotation.value]);
}

TEST(KernelKindTest, KernelsWithCollectiveMetadataAreCommunicationWhateverTheirName) {
  testing::RunBuilder job;
  auto& rank = job.Rank(0);
  rank.Kernel(7, "mystery", 0, 1);
  model::CollectiveRecord record;
  record.source = model::CollectiveRecord::Source::kKernel;
  record.event_name = rank.Name("mystery");
  rank.Collective(record);
  const model::Run run = job.Build();
  NameId kernel;
  ASSERT_TRUE(run.names.Find("mystery", &kernel));
  EXPECT_TRUE(ClassifyCommunication(run)[kernel.value]);
}

}  // namespace
}  // namespace lockstep::analysis
