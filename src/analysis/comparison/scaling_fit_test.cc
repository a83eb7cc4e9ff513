#include "analysis/comparison/scaling_fit.h"

#include <gtest/gtest.h>

namespace lockstep::comparison {
namespace {

std::vector<FitPoint> Planted(Scaling kind, double serial, double parallel, double cost, Growth growth,
                              const std::vector<double>& sizes) {
  std::vector<FitPoint> points;
  for (const double n : sizes) {
    const double work = serial + (kind == Scaling::kStrong ? parallel / n : 0);
    points.push_back({n, work, cost * GrowthAt(growth, n), 10, 10});
  }
  return points;
}

TEST(ScalingFitTest, ExactPointsGiveThePlantedParts) {
  for (const Growth growth : {Growth::kRing, Growth::kLogarithm, Growth::kLinear}) {
    const ScalingFit fit =
        FitScaling(Scaling::kStrong, Planted(Scaling::kStrong, 3e6, 64e6, 5e5, growth, {1, 2, 4, 8}), 0.95);
    ASSERT_TRUE(fit.fitted);
    EXPECT_NEAR(fit.serial.value, 3e6, 1);
    EXPECT_NEAR(fit.parallel.value, 64e6, 1);
    EXPECT_NEAR(fit.communication.value, 5e5, 1);
    EXPECT_EQ(fit.growth, growth);
    EXPECT_TRUE(fit.growth_known);
    EXPECT_NEAR(fit.next_step_ns, 3e6 + 4e6 + 5e5 * GrowthAt(growth, 16), 1);
  }
}

TEST(ScalingFitTest, TwoPointsOfAStrongSeriesLeaveTheFormUntested) {
  const ScalingFit fit =
      FitScaling(Scaling::kStrong, Planted(Scaling::kStrong, 1e6, 8e6, 1e5, Growth::kRing, {1, 2}), 0.95);
  EXPECT_TRUE(fit.fitted);
  EXPECT_FALSE(fit.growth_known);
  EXPECT_NE(fit.reason.find("untested"), std::string::npos);
  // Communication at 4 ranks may be anything from the ring's 1.5e5 to the linear 3e5.
  EXPECT_LE(fit.next_low_ns, 3e6 + 1.5e5);
  EXPECT_GE(fit.next_high_ns, 3e6 + 3e5);
}

TEST(ScalingFitTest, OnePointIsNotFitted) {
  EXPECT_FALSE(FitScaling(Scaling::kWeak, {{4, 1e6, 1e5, 1, 1}}, 0.95).fitted);
}

TEST(ScalingFitTest, PartsNeverGoBelowZero) {
  // Work that falls faster than 1/n would need negative serial work.
  const ScalingFit fit =
      FitScaling(Scaling::kStrong, {{1, 100e6, 0, 1e3, 1e3}, {2, 40e6, 0, 1e3, 1e3}, {4, 10e6, 0, 1e3, 1e3}}, 0.95);
  EXPECT_GE(fit.serial.value, 0);
  EXPECT_GE(fit.parallel.value, 0);
  EXPECT_GT(fit.worst_residual, 0.1);
  EXPECT_NE(fit.reason.find("misses a point"), std::string::npos);
}

TEST(ScalingFitTest, PointsWithoutErrorsGiveNoMarginWhenNoneIsToSpare) {
  const ScalingFit fit = FitScaling(Scaling::kStrong, {{1, 9e6, 0, 0, 0}, {2, 5e6, 1e5, 0, 0}}, 0.95);
  EXPECT_TRUE(fit.fitted);
  EXPECT_FALSE(fit.serial.margin);
  EXPECT_FALSE(fit.communication.margin);
}

TEST(ScalingFitTest, SerialWorkBoundsAStrongSeriesThatHasIt) {
  EXPECT_EQ(
      FitScaling(Scaling::kStrong, Planted(Scaling::kStrong, 20e6, 10e6, 1e4, Growth::kRing, {1, 2, 4}), 0.95).bound,
      "serial work");
  EXPECT_EQ(FitScaling(Scaling::kWeak, Planted(Scaling::kWeak, 5e6, 0, 2e6, Growth::kRing, {1, 2, 4}), 0.95).bound,
            "communication");
}

}  // namespace
}  // namespace lockstep::comparison
