#include "base/median.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace lockstep {
namespace {

TEST(MedianTest, OfAnOddNumberAllAreTheMiddle) {
  std::vector<int64_t> values = {5, 1, 9};
  EXPECT_EQ(Median(&values), 5);
  EXPECT_EQ(UpperMedian(&values), 5);
  EXPECT_EQ(LowerMedian(&values), 5);
  std::vector<int64_t> one = {7};
  EXPECT_EQ(Median(&one), 7);
  EXPECT_EQ(LowerMedian(&one), 7);
}

TEST(MedianTest, OfAnEvenNumberTheyDiffer) {
  std::vector<int64_t> values = {10, 1, 7, 4};
  EXPECT_EQ(LowerMedian(&values), 4);
  EXPECT_EQ(UpperMedian(&values), 7);
  EXPECT_EQ(Median(&values), 5);
  std::vector<double> reals = {10, 1, 7, 4};
  EXPECT_EQ(Median(&reals), 5.5);
}

TEST(MedianTest, WholeNumbersDoNotOverflow) {
  std::vector<int64_t> values = {INT64_MAX, INT64_MAX - 2};
  EXPECT_EQ(Median(&values), INT64_MAX - 1);
}

}  // namespace
}  // namespace lockstep
