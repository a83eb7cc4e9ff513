#include "analysis/regions/regions.h"

#include <gtest/gtest.h>

#include <vector>

#include "analysis/testing/analysed_rank.h"

namespace lockstep::analysis {
namespace {

using testing::AnalysedRank;
using testing::kMs;
using testing::RankBuilder;
using testing::RunBuilder;

constexpr int64_t kThread = 1;

std::vector<RegionRow> MapOf(RunBuilder& builder) {
  const AnalysedRank rank(builder, {});
  return MapRegions(rank.context);
}

TEST(RegionsTest, NumbersOfStepsAreLeftOut) {
  EXPECT_EQ(RegionName("step 12"), "step *");
  EXPECT_EQ(RegionName("train_iteration_7"), "train_iteration_*");
  EXPECT_EQ(RegionName("Epoch: 3"), "Epoch: *");
  for (const char* whole : {"layer3", "forward", "12", "", "7 steps", "conv2d_1"}) EXPECT_EQ(RegionName(whole), whole);
}

TEST(RegionsTest, StepsOperatorsAndCollectivesAreNoRegions) {
  RunBuilder builder;
  builder.Rank(0).Annotation(kThread, "ProfilerStep#1", 0, kMs).Op(kThread, "forward", 0, kMs);
  builder.Rank(0).Annotation(kThread, "gloo:all_reduce", 0, kMs);
  EXPECT_TRUE(MapOf(builder).empty());
}

TEST(RegionsTest, TimesPaceAndRangesInsideTheirLike) {
  RunBuilder builder;
  RankBuilder& rank = builder.Rank(0);
  for (int64_t i = 0; i < 3; ++i) {
    rank.Annotation(kThread, "forward", 10 * i * kMs, (i + 1) * kMs);
    rank.Annotation(kThread, "forward", 10 * i * kMs + 1000, 1000);  // of a submodule
    rank.Annotation(kThread, "layer", 10 * i * kMs + 5000, 2000);
  }
  const auto rows = MapOf(builder);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].name, "forward");
  EXPECT_EQ(rows[0].count, 3U);
  EXPECT_EQ(rows[0].total_ns, 6 * kMs);
  EXPECT_EQ(rows[0].min_ns, kMs);
  EXPECT_EQ(rows[0].median_ns, 2 * kMs);
  EXPECT_EQ(rows[0].max_ns, 3 * kMs);
  EXPECT_EQ(rows[0].pace_ns, 10 * kMs);
  EXPECT_EQ(rows[0].own_ns, 6 * kMs);
  EXPECT_FALSE(rows[0].device_ns);
  EXPECT_EQ(rows[1].count, 3U);
}

TEST(RegionsTest, WaitingInACollectiveIsNotTheRegionsOwn) {
  RunBuilder builder;
  RankBuilder& rank = builder.Rank(0);
  rank.Annotation(kThread, "backward", 0, 10 * kMs);
  rank.Annotation(2, "gloo:all_reduce", 6 * kMs, 3 * kMs);
  rank.Annotation(2, "gloo:all_reduce", 9 * kMs, 5 * kMs);  // ends after the region
  const auto rows = MapOf(builder);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].total_ns, 10 * kMs);
  EXPECT_EQ(rows[0].own_ns, 6 * kMs);
}

TEST(RegionsTest, DeviceWorkBelongsToAllRangesAroundItsLaunch) {
  RunBuilder builder;
  RankBuilder& rank = builder.Rank(0);
  rank.Annotation(kThread, "epoch 1", 0, 10 * kMs).Annotation(kThread, "forward", 0, 2 * kMs);
  rank.Annotation(2, "augment", 0, 10 * kMs);  // another thread
  const auto launch = [&](int64_t launch_ns, const char* name, int64_t start_ns, int64_t duration_ns, uint32_t id) {
    rank.Runtime(kThread, "cudaLaunchKernel", launch_ns, 1000, id);
    rank.Kernel(7, name, start_ns, duration_ns, id);
  };
  launch(kMs, "gemm", 3 * kMs, kMs, 1);  // after its range's end
  launch(3 * kMs, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 6 * kMs, 2 * kMs, 2);
  const auto rows = MapOf(builder);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].name, "augment");
  EXPECT_EQ(rows[0].device_ns, 0);
  EXPECT_EQ(rows[1].name, "epoch *");
  EXPECT_EQ(rows[1].device_event_count, 2U);
  EXPECT_EQ(rows[1].device_ns, 3 * kMs);
  EXPECT_EQ(rows[1].device_communication_ns, 2 * kMs);
  EXPECT_EQ(rows[1].projected_ns, 5 * kMs);
  EXPECT_FALSE(rows[1].own_ns);
  EXPECT_EQ(rows[2].device_ns, kMs);
  EXPECT_EQ(rows[2].projected_ns, kMs);
}

TEST(RegionsTest, BalanceNamesTheRankWithMost) {
  RunBuilder builder;
  builder.Rank(0).Annotation(kThread, "backward", 0, 10 * kMs);
  builder.Rank(1).Annotation(kThread, "backward", 0, 10 * kMs);
  const AnalysedRank rank(builder, {});
  RegionRow fast;
  fast.name = "backward";
  fast.count = 1;
  fast.total_ns = 10 * kMs;
  fast.own_ns = 2 * kMs;
  RegionRow slow = fast;
  slow.rank_index = 1;
  slow.own_ns = 6 * kMs;
  const auto balance = BalanceRegions(*rank.context.shared->run, {fast, slow});
  ASSERT_EQ(balance.size(), 1U);
  EXPECT_EQ(balance[0].rank_count, 2U);
  EXPECT_DOUBLE_EQ(balance[0].total_imbalance, 1);  // each waits for the other inside
  EXPECT_DOUBLE_EQ(*balance[0].own_imbalance, 1.5);
  EXPECT_EQ(balance[0].most_own_rank_index, 1U);
  EXPECT_EQ(balance[0].mean_own_ns, 4 * kMs);
  EXPECT_FALSE(balance[0].mean_device_ns);
}

}  // namespace
}  // namespace lockstep::analysis
