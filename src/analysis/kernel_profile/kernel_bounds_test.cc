#include "analysis/kernel_profile/kernel_bounds.h"

#include <gtest/gtest.h>

#include <limits>

namespace lockstep::analysis {
namespace {

using model::KernelLaunch;
using model::KernelProfiles;
using model::SummedKind;

KernelLaunch Launch(std::optional<double> compute, std::optional<double> memory) {
  KernelLaunch launch;
  launch.compute_ratio = compute;
  launch.memory_ratio = memory;
  return launch;
}

TEST(KernelBoundsTest, TheThroughputThatIsNearItsLimitBounds) {
  EXPECT_EQ(BoundOf(Launch(0.9, 0.3)), KernelBound::kCompute);
  EXPECT_EQ(BoundOf(Launch(0.3, 0.9)), KernelBound::kMemory);
  EXPECT_EQ(BoundOf(Launch(0.85, 0.9)), KernelBound::kBalanced);
  EXPECT_EQ(BoundOf(Launch(0.59, 0.2)), KernelBound::kLatency);
  EXPECT_EQ(BoundOf(Launch({}, 0.9)), KernelBound::kUnknown);
}

TEST(KernelBoundsTest, TheRoofIsTheLowerCeiling) {
  KernelLaunch launch;
  launch.dram_bytes_per_s = 100;
  launch.dram_peak_bytes_per_s = 400;
  launch.rates = {{model::Precision::kFp64, 0, 500, false}, {model::Precision::kFp32, 200, 4000, false}};
  const auto below_ridge = RooflineOf(launch);
  ASSERT_EQ(below_ridge.size(), 1U);  // nothing was done in double precision
  EXPECT_DOUBLE_EQ(below_ridge[0].flops_per_byte, 2);
  EXPECT_DOUBLE_EQ(below_ridge[0].ridge_flops_per_byte, 10);
  EXPECT_DOUBLE_EQ(below_ridge[0].roof_flops_per_s, 800);
  EXPECT_DOUBLE_EQ(below_ridge[0].roof_ratio, 0.25);
  launch.rates[1].flops_per_s = 3000;
  EXPECT_DOUBLE_EQ(RooflineOf(launch)[0].roof_flops_per_s, 4000);
  launch.dram_bytes_per_s.reset();
  EXPECT_TRUE(RooflineOf(launch).empty());
}

TEST(KernelBoundsTest, SumsOverRanksTellWhoHasMost) {
  KernelProfiles profiles;
  const auto add = [&](const char* report, std::optional<int32_t> rank, const char* name, int64_t total_ns) {
    profiles.sums.push_back(
        {std::string(report) + ".csv", report, rank, SummedKind::kKernel, name, 2, total_ns, 1, total_ns});
  };
  add("r0", 0, "gemm", 100);
  add("r1", 1, "gemm", 300);
  add("r1", 1, "gemm", 300);  // the same table once more
  add("r1", 1, "copy", 50);
  add("other", {}, "gemm", 1000);
  const auto rows = SumOverRanks(profiles);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].name, "gemm");
  EXPECT_EQ(rows[0].total_ns, 1400);
  EXPECT_EQ(rows[0].count, 6U);
  EXPECT_EQ(rows[0].report_count, 3U);
  EXPECT_DOUBLE_EQ(rows[0].imbalance.value(), 1.5);
  EXPECT_EQ(rows[0].most_rank, 1);
  EXPECT_DOUBLE_EQ(rows[1].imbalance.value(), 2);  // rank 0 has none of it
}

TEST(KernelBoundsTest, SumsEndAtTheLargestNumber) {
  KernelProfiles profiles;
  for (const char* report : {"a", "b"}) {
    profiles.sums.push_back({report, report, 0, SummedKind::kApi, "f", std::numeric_limits<uint64_t>::max(),
                             std::numeric_limits<int64_t>::max(), 0, 0});
  }
  EXPECT_EQ(SumOverRanks(profiles).at(0).total_ns, std::numeric_limits<int64_t>::max());
}

}  // namespace
}  // namespace lockstep::analysis
