#include "inside/launch/kernel_choice.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

std::string Row(const std::string& name, int rank, int64_t total_ns, int64_t count = 100,
                const std::string& kind = "compute") {
  return fmt::format(R"({{"rank":{},"window":0,"name":"{}","kind":"{}","count":{},"total_ns":{}}})", rank, name, kind,
                     count, total_ns);
}

std::string Report(const std::vector<std::string>& rows) {
  std::string text;
  for (const std::string& row : rows) text += (text.empty() ? "" : ",") + row;
  return R"({"schema":"lockstep.analyze/1","data":{"kernels":[)" + text + "]}}";
}

TEST(KernelChoiceTest, FunctionsAreNamedAsNsysAndNcuNameThem) {
  const std::pair<const char*, const char*> cases[] = {
      {"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int, float)",
       "vectorized_elementwise_kernel"},
      {"ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"},
      {"triton_poi_fused_add_0", "triton_poi_fused_add_0"},
      {"void (anonymous namespace)::softmax_warp_forward<float>(float*, int)", "softmax_warp_forward"},
      {"<unnamed>::reduce_kernel(int)", "reduce_kernel"},
      {"void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm>(cutlass_80_tensorop_s1688gemm::Params)", "Kernel2"},
      {"void Tile<4>::run<int>(int)", "run"},
      {"Cijk_Ailk_Bljk_SB_MT64x64x8", "Cijk_Ailk_Bljk_SB_MT64x64x8"},
      {"", ""},
      {"<", "<"},
      {"(", "("}};
  for (const auto& [demangled, function] : cases) EXPECT_EQ(FunctionName(demangled), function) << demangled;
}

TEST(KernelChoiceTest, TheHeaviestOverAllRanksComeFirst) {
  const auto kernels = ReadKernelTotals(
      Report({Row("void f<1>(int)", 0, 10), Row("void f<2>(int)", 1, 30, 8), Row("g", 0, 35),
              Row("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 0, 900), Row("c", 0, 900, 1, "communication"),
              Row("Memcpy HtoD", 0, 900, 1, "memcpy"), Row("nvshmem_barrier", 1, 900)}));
  ASSERT_TRUE(kernels);
  ASSERT_THAT(*kernels, SizeIs(2));
  EXPECT_EQ((*kernels)[0].function, "f");
  EXPECT_EQ((*kernels)[0].total_ns, 40);
  EXPECT_EQ((*kernels)[0].count_per_rank, 8);
  EXPECT_THAT((*kernels)[0].ns_of_rank, ElementsAre(std::pair(0, 10), std::pair(1, 30)));
  EXPECT_EQ((*kernels)[1].function, "g");
}

TEST(KernelChoiceTest, FourFifthsOfTheTimeAreEnough) {
  const auto kernels = *ReadKernelTotals(Report({Row("a", 0, 60), Row("b", 0, 20), Row("c", 0, 15), Row("d", 0, 5)}));
  EXPECT_THAT(Heaviest(kernels, 5), SizeIs(2));
  EXPECT_THAT(Heaviest(kernels, 1), SizeIs(1));
}

TEST(KernelChoiceTest, PatternsMatchWholeNamesAndNeverNccl) {
  EXPECT_EQ(KernelPattern({"f", "g.x", "f"}).value(), R"(regex:^(f|g\.x)$)");
  EXPECT_EQ(KernelPattern({"triton_poi_fused_add_0", "triton_poi_fused_add_12", "triton_red_x"}).value(),
            "regex:^(triton_poi_fused_add_[0-9]+|triton_red_x)$");
  for (const char* name : {"ncclDevKernel_SendRecv", "NVSHMEM_x", ""})
    EXPECT_EQ(KernelPattern({name}).error().code, ErrorCode::kInvalidArgument) << name;
  EXPECT_FALSE(KernelPattern({}));
}

TEST(KernelChoiceTest, OtherTextIsNoAnalysis) {
  for (const char* text : {"", "{", "[]", "{}", R"({"data":[]})", R"({"data":{"kernels":{}}})",
                           R"({"data":{"kernels":[1]}})", R"({"data":{"kernels":[{}]}})", "[[[[[[[["}) {
    EXPECT_EQ(ReadKernelTotals(text).error().code, ErrorCode::kCorruptData) << text;
  }
  EXPECT_EQ(ReadKernelTotals(Report({})).error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(ReadKernelTotals(std::string(100'000, '[')).error().code, ErrorCode::kCorruptData);
  EXPECT_EQ(ReadKernelTotals(Report({Row("a", 0, -1)})).error().code, ErrorCode::kCorruptData);
}

TEST(KernelChoiceTest, SumsDoNotOverflow) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(ReadKernelTotals(Report({Row("a", 0, most), Row("a", 0, most)}))->front().total_ns, most);
}

}  // namespace
}  // namespace lockstep::launch
