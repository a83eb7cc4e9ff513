#include "base/number_ranges.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(NumberRangesTest, NeighboursAreDrawnTogether) {
  EXPECT_EQ(NumberRangesText({}), "");
  EXPECT_EQ(NumberRangesText({3}), "3");
  EXPECT_EQ(NumberRangesText({0, 1, 4, 5, 6, 9}), "0, 1, 4-6, 9");
}

}  // namespace
}  // namespace lockstep
