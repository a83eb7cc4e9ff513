#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>

#include "analysis/comparison/scaling.h"
#include "analysis/comparison/statistics.h"
#include "planted_run.h"

namespace lockstep::comparison {
namespace {

using testing::ProfileOf;
using testing::SmallJob;

/// A run of n ranks whose kernels take `scale` and whose single bucket takes `transfer_ns` behind the backward pass.
ScalingInput RunOf(int32_t ranks, double scale, double transfer_ns, int64_t loader_ns = 3'000'000) {
  tracegen::TraceSpec spec = SmallJob(static_cast<uint64_t>(ranks) * 100 + static_cast<uint64_t>(transfer_ns) % 97);
  spec.rank_count = ranks;
  spec.bucket_layers = 2;
  spec.overlap_ratio = 0;
  spec.kernel_scale = scale;
  spec.transfer_ns = std::llround(transfer_ns);
  spec.loader_ns = loader_ns;
  ProfileOptions options;
  options.names = false;
  return {ranks, ProfileOf(spec, options)};
}

TEST(PlantedScalingTest, StrongScalingComesBackInItsParts) {
  constexpr double kCost = 500'000;
  std::vector<ScalingInput> runs;
  for (const int32_t n : {1, 2, 4, 8}) runs.push_back(RunOf(n, 16.0 / n, kCost * GrowthAt(Growth::kRing, n)));
  const Series compute = runs.front().profile.mean_parts[static_cast<size_t>(Part::kCompute)];
  const double parallel = Median(compute);  // all kernels of the one-rank run scale
  const auto curve = MeasureScaling(std::move(runs), {}, {.kind = Scaling::kStrong});
  ASSERT_TRUE(curve);
  const ScalingFit& fit = curve->fit;
  ASSERT_TRUE(fit.fitted);
  EXPECT_NEAR(fit.parallel.value, parallel, 0.02 * parallel);
  EXPECT_NEAR(fit.communication.value, kCost, 0.05 * kCost);
  EXPECT_EQ(fit.growth, Growth::kRing);
  // The loader's 3 ms and what the host and copies add on every rank.
  EXPECT_GT(fit.serial.value, 3'000'000);
  EXPECT_LT(fit.serial.value, 3'600'000);
  EXPECT_LT(fit.worst_residual, 0.02);

  // The prediction for 16 ranks against a run of 16.
  const ScalingInput next = RunOf(16, 1, kCost * GrowthAt(Growth::kRing, 16));
  EXPECT_NEAR(fit.next_step_ns, Median(next.profile.step_ns), 0.03 * fit.next_step_ns);
}

TEST(PlantedScalingTest, WeakScalingComesBackWithItsGrowth) {
  for (const Growth growth : {Growth::kRing, Growth::kLogarithm, Growth::kLinear}) {
    std::vector<ScalingInput> runs;
    for (const int32_t n : {1, 2, 4, 8}) runs.push_back(RunOf(n, 1, 700'000 * GrowthAt(growth, n)));
    const auto curve = MeasureScaling(std::move(runs), {}, {});
    ASSERT_TRUE(curve);
    EXPECT_EQ(curve->fit.growth, growth);
    EXPECT_NEAR(curve->fit.communication.value, 700'000, 35'000);
    const ScalingPoint& last = curve->points.back();
    const double planted = 700'000 * GrowthAt(growth, 8);
    EXPECT_NEAR(last.step_ns - curve->points.front().step_ns, planted, 0.05 * planted);
    EXPECT_DOUBLE_EQ(last.speed_up, 8 * last.weak_efficiency);
    EXPECT_DOUBLE_EQ(last.strong_efficiency, last.weak_efficiency / 8);
  }
}

TEST(PlantedScalingTest, ARunWithoutSynchronisationGivesWhatItCosts) {
  std::vector<ScalingInput> runs;
  runs.push_back(RunOf(1, 1, 0));
  runs.push_back(RunOf(4, 1, 900'000));
  std::vector<ScalingInput> no_sync;
  no_sync.push_back(RunOf(4, 1, 0));
  const auto curve = MeasureScaling(std::move(runs), std::move(no_sync), {});
  ASSERT_TRUE(curve);
  ASSERT_EQ(curve->direct.size(), 1u);
  EXPECT_NEAR(curve->direct.front().overhead_ns, 900'000, 45'000);
}

TEST(PlantedScalingTest, TwoRunsOfOneSizeAreRefused) {
  std::vector<ScalingInput> runs;
  runs.push_back(RunOf(2, 1, 0));
  runs.push_back(RunOf(2, 1, 1));
  EXPECT_FALSE(MeasureScaling(std::move(runs), {}, {}));
}

}  // namespace
}  // namespace lockstep::comparison
