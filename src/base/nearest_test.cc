#include "base/nearest.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

const std::vector<std::string> kNames = {"kernels", "collectives", "stragglers", "idle"};

TEST(NearestNameTest, OneSlipIsForgiven) {
  EXPECT_EQ(NearestName("kernel", kNames), "kernels");
  EXPECT_EQ(NearestName("idel", kNames), "idle");  // neighbours swapped
  EXPECT_EQ(NearestName("stragler", kNames), "stragglers");
}

TEST(NearestNameTest, ABeginningIsEnough) { EXPECT_EQ(NearestName("coll", kNames), "collectives"); }

TEST(NearestNameTest, NothingNearIsEmpty) {
  EXPECT_EQ(NearestName("memory", kNames), "");
  EXPECT_EQ(NearestName(std::string(10000, 'x'), kNames), "");
  EXPECT_EQ(DidYouMean("memory", kNames), "");
}

}  // namespace
}  // namespace lockstep
