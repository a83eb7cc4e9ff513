#include "model/kernel_name.h"

#include <gtest/gtest.h>

namespace lockstep::model {
namespace {

TEST(KernelNameTest, LibraryKernelsAreCommunicationInAnyCase) {
  EXPECT_TRUE(IsCommunicationKernelName("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"));
  EXPECT_TRUE(IsCommunicationKernelName("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"));
  EXPECT_TRUE(IsCommunicationKernelName("rcclGenericKernel"));
  EXPECT_TRUE(IsCommunicationKernelName("mscclKernel_Sum_float_LL_0(ncclDevComm*)"));
  EXPECT_TRUE(IsCommunicationKernelName("oneCCL_allreduce"));
  EXPECT_TRUE(IsCommunicationKernelName("void nvshmemi_transfer<int>"));
  EXPECT_TRUE(IsCommunicationKernelName("void deep_ep::internode::dispatch<false>(int4*)"));
}

TEST(KernelNameTest, CollectivesOfEnginesAreKnownByTheirSound) {
  EXPECT_TRUE(IsCommunicationKernelName("void vllm::cross_device_reduce_1stage<__half, 8>(vllm::RankData*)"));
  for (const char* name :
       {"void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>()",
        "void tensorrt_llm::kernels::twoShotAllReduceKernel<float>()", "allreduce_fusion_kernel_1stage"}) {
    EXPECT_FALSE(IsCommunicationKernelName(name)) << name;
    EXPECT_TRUE(LooksLikeCollectiveKernel(name)) << name;
  }
}

TEST(KernelNameTest, ReductionsWithinADeviceAreCompute) {
  for (const char* name : {"void softmax<BlockAllReduce<float>>(float*)", "warp_all_reduce_sum",
                           "void at::native::reduce_kernel<512, 1>()", "hipBLASLt_gemm", ""}) {
    EXPECT_FALSE(IsCommunicationKernelName(name)) << name;
    EXPECT_FALSE(LooksLikeCollectiveKernel(name)) << name;
  }
}

}  // namespace
}  // namespace lockstep::model
