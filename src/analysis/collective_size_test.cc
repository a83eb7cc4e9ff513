#include "analysis/collective_size.h"

#include <gtest/gtest.h>

#include <limits>

namespace lockstep::analysis {
namespace {

TEST(CollectiveSizeTest, KnowsBothSpellingsOfElementTypes) {
  EXPECT_EQ(ElementBytes("Float"), 4);
  EXPECT_EQ(ElementBytes("float"), 4);
  EXPECT_EQ(ElementBytes("BFloat16"), 2);
  EXPECT_EQ(ElementBytes("c10::BFloat16"), 2);
  EXPECT_EQ(ElementBytes("long int"), 8);
  EXPECT_EQ(ElementBytes("c10::Float8_e4m3fn"), 1);
  EXPECT_EQ(ElementBytes("c10::complex<float>"), 8);
  EXPECT_EQ(ElementBytes("TensorList"), std::nullopt);
  EXPECT_EQ(ElementBytes(""), std::nullopt);
}

TEST(CollectiveSizeTest, AllReduceCountsOneBuffer) {
  EXPECT_EQ(CollectiveBytes(CollectiveKind::kAllReduce, {394241, 394241, 4, 8}), 1576964);
}

TEST(CollectiveSizeTest, AllGatherCountsTheWholeOutput) {
  EXPECT_EQ(CollectiveBytes(CollectiveKind::kAllGather, {100, 800, 2, 8}), 1600);
  EXPECT_EQ(CollectiveBytes(CollectiveKind::kAllGather, {100, std::nullopt, 2, 8}), 1600);
  EXPECT_EQ(CollectiveBytes(CollectiveKind::kAllGather, {100, std::nullopt, 2, std::nullopt}), std::nullopt);
}

TEST(CollectiveSizeTest, ReduceScatterCountsTheWholeInput) {
  EXPECT_EQ(CollectiveBytes(CollectiveKind::kReduceScatter, {800, 100, 2, 8}), 1600);
  EXPECT_EQ(CollectiveBytes(CollectiveKind::kReduceScatter, {std::nullopt, 100, 2, 8}), 1600);
}

TEST(CollectiveSizeTest, WhatIsUnknownOrDoesNotFitIsAbsent) {
  EXPECT_EQ(CollectiveBytes(CollectiveKind::kAllReduce, {std::nullopt, std::nullopt, 4, 8}), std::nullopt);
  EXPECT_EQ(CollectiveBytes(CollectiveKind::kAllReduce, {100, 100, std::nullopt, 8}), std::nullopt);
  EXPECT_EQ(CollectiveBytes(CollectiveKind::kBarrier, {1, 1, 4, 8}), std::nullopt);
  EXPECT_EQ(CollectiveBytes(CollectiveKind::kAllReduce, {std::numeric_limits<int64_t>::max(), 1, 4, 8}), std::nullopt);
  EXPECT_EQ(CollectiveBytes(CollectiveKind::kGather, {5, 5, 4, -3}), std::nullopt);
}

TEST(CollectiveSizeTest, BusBandwidthFactorsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(*BusBandwidthFactor(CollectiveKind::kAllReduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(*BusBandwidthFactor(CollectiveKind::kAllToAll, 8), 0.875);
  EXPECT_DOUBLE_EQ(*BusBandwidthFactor(CollectiveKind::kAllGather, 4), 0.75);
  EXPECT_DOUBLE_EQ(*BusBandwidthFactor(CollectiveKind::kBroadcast, 8), 1);
  EXPECT_FALSE(BusBandwidthFactor(CollectiveKind::kAllReduce, 1).has_value());
  EXPECT_FALSE(BusBandwidthFactor(CollectiveKind::kBarrier, 8).has_value());
}

}  // namespace
}  // namespace lockstep::analysis
