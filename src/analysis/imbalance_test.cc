#include "analysis/imbalance.h"

#include <gtest/gtest.h>

#include "analysis/testing/collective_job.h"

namespace lockstep::analysis {
namespace {

const ImbalanceRow* Get(const Imbalance& imbalance, std::string_view quantity) {
  for (const ImbalanceRow& row : imbalance.rows) {
    if (row.quantity == quantity) return &row;
  }
  return nullptr;
}

TEST(ImbalanceTest, TheRatioIsHowFarTheLargestLiesAboveTheMean) {
  testing::RunBuilder builder;
  for (const int32_t rank : {0, 1}) {
    for (int64_t i = 0; i <= rank; ++i) builder.Rank(rank).Kernel(7, "gemm", i * 100, 10);
  }
  testing::Job job(builder.Build());
  Breakdown breakdown;
  for (size_t r = 0; r < 2; ++r) {
    BreakdownRow row;
    row.rank_index = r;
    row.basis = Basis::kDevice;
    row.compute_ns = r == 0 ? 100 : 300;
    breakdown.ranks.push_back(row);
  }
  const Imbalance imbalance = ComputeImbalance(job.shared, breakdown, {});
  const ImbalanceRow* compute = Get(imbalance, "compute_ns");
  ASSERT_NE(compute, nullptr);
  EXPECT_DOUBLE_EQ(compute->mean, 200);
  EXPECT_DOUBLE_EQ(*compute->ratio, 0.5);
  EXPECT_EQ(compute->max_rank_index, 1u);
  EXPECT_EQ(compute->min_rank_index, 0u);
  EXPECT_FALSE(Get(imbalance, "communication_ns")->ratio.has_value());
  EXPECT_DOUBLE_EQ(Get(imbalance, "kernel_count")->max, 2);
}

TEST(ImbalanceTest, ASingleRankHasNoRows) {
  testing::RunBuilder builder;
  builder.Rank(0).Kernel(7, "gemm", 0, 10);
  testing::Job job(builder.Build());
  Breakdown breakdown;
  breakdown.ranks.resize(1);
  breakdown.ranks[0].basis = Basis::kDevice;
  EXPECT_TRUE(ComputeImbalance(job.shared, breakdown, {}).rows.empty());
}

TEST(ImbalanceTest, DevicesOfARankAddUpAndTheCpuIsApart) {
  testing::RunBuilder builder;
  for (const int32_t rank : {0, 1}) builder.Rank(rank).Kernel(7, "gemm", 0, 10);
  testing::Job job(builder.Build());
  std::vector<MemoryRow> memory;
  for (size_t r = 0; r < 2; ++r) {
    for (const int32_t device : {-1, 0, 1}) {
      MemoryRow row;
      row.rank_index = r;
      row.device = device;
      row.peak_allocated_bytes = device < 0 ? 5 : 100 * static_cast<int64_t>(r + 1);
      memory.push_back(row);
    }
  }
  const Imbalance imbalance = ComputeImbalance(job.shared, {}, memory);
  EXPECT_DOUBLE_EQ(Get(imbalance, "peak_allocated_bytes")->max, 400);
  EXPECT_DOUBLE_EQ(Get(imbalance, "cpu_peak_allocated_bytes")->max, 5);
}

}  // namespace
}  // namespace lockstep::analysis
