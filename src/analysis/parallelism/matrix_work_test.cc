#include "analysis/parallelism/matrix_work.h"

#include <gtest/gtest.h>

namespace lockstep::analysis {
namespace {

constexpr std::string_view kTwoBf16 = R"(["c10::BFloat16","c10::BFloat16"])";

TEST(MatrixWorkTest, AProductIsTwoMNK) {
  const auto work = MatrixWorkOf("aten::mm", "[[3,5],[5,7]]", kTwoBf16, "");
  ASSERT_TRUE(work);
  EXPECT_EQ(work->flops, 2 * 3 * 7 * 5);
  EXPECT_EQ(work->bytes, 2 * (3 * 5 + 5 * 7 + 3 * 7));
}

TEST(MatrixWorkTest, AnAddendAddsItsSumsAndItsBytes) {
  const auto work =
      MatrixWorkOf("aten::addmm", "[[7],[3,5],[5,7],[],[]]", R"(["float","float","float","Scalar","Scalar"])", "");
  ASSERT_TRUE(work);
  EXPECT_EQ(work->flops, 2 * 3 * 7 * 5 + 3 * 7);
  EXPECT_EQ(work->bytes, 4 * (3 * 5 + 5 * 7 + 3 * 7 + 7));
}

TEST(MatrixWorkTest, ABatchCountsEachOfItsProducts) {
  const auto work = MatrixWorkOf("aten::bmm", "[[16,5,64],[16,64,9]]", kTwoBf16, "");
  ASSERT_TRUE(work);
  EXPECT_EQ(work->flops, int64_t{2} * 16 * 5 * 9 * 64);
}

TEST(MatrixWorkTest, AConvolutionCountsInputsPerOutput) {
  const auto work = MatrixWorkOf("aten::convolution", "[[4,3,224,224],[768,3,16,16],[768],[],[],[],[],[],[]]",
                                 R"(["c10::BFloat16","c10::BFloat16","c10::BFloat16","ScalarList"])",
                                 R"(["","","","[16, 16]","[0, 0]","[1, 1]","False","[0, 0]","1"])");
  ASSERT_TRUE(work);
  EXPECT_EQ(work->flops, int64_t{2} * (4 * 768 * 14 * 14) * (3 * 16 * 16));
}

TEST(MatrixWorkTest, CausalAttentionIsHalf) {
  const std::string_view dims = "[[4,12,197,64],[4,12,197,64],[4,12,197,64],[],[],[],[]]";
  const auto full = MatrixWorkOf("aten::_scaled_dot_product_flash_attention", dims, kTwoBf16,
                                 R"(["","","","0.","False","False","0.125"])");
  const auto causal = MatrixWorkOf("aten::_scaled_dot_product_flash_attention", dims, kTwoBf16,
                                   R"(["","","","0.","True","False","0.125"])");
  ASSERT_TRUE(full && causal);
  EXPECT_EQ(full->flops, int64_t{4} * 4 * 12 * 197 * 197 * 64);
  EXPECT_EQ(causal->flops, full->flops / 2);
}

TEST(MatrixWorkTest, ShapesThatDoNotFitHaveNoWork) {
  EXPECT_FALSE(MatrixWorkOf("aten::mm", "[[3,5],[6,7]]", kTwoBf16, ""));
  EXPECT_FALSE(MatrixWorkOf("aten::mm", "[[3,5]]", kTwoBf16, ""));
  EXPECT_FALSE(MatrixWorkOf("aten::mm", "[[16,3,5],[5,7]]", kTwoBf16, ""));
  EXPECT_FALSE(MatrixWorkOf("aten::mm", "[[-3,5],[5,7]]", kTwoBf16, ""));
  EXPECT_FALSE(MatrixWorkOf("aten::mm", "nonsense]", kTwoBf16, ""));
  EXPECT_FALSE(MatrixWorkOf("aten::mm", "[[3,5],[5,7]]", "[]", ""));
  EXPECT_FALSE(MatrixWorkOf("aten::mm", "[[4000000000,4000000000],[4000000000,4000000000]]", kTwoBf16, ""));
  EXPECT_FALSE(MatrixWorkOf("aten::convolution", "[[4,3,9,9],[8,3,3,3]]", kTwoBf16, ""));
  EXPECT_FALSE(MatrixWorkOf("aten::addmm", "[]", kTwoBf16, ""));
}

TEST(MatrixWorkTest, TheTypeIsThatOfTheFactors) {
  EXPECT_EQ(FactorTypeOf("aten::addmm", R"(["float","c10::Half","c10::Half"])"), "c10::Half");
  EXPECT_EQ(FactorTypeOf("aten::mm", R"(["c10::Half","c10::Half"])"), "c10::Half");
  EXPECT_EQ(FactorTypeOf("aten::mm", ""), "");
}

}  // namespace
}  // namespace lockstep::analysis
