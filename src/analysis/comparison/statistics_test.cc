#include "analysis/comparison/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace lockstep::comparison {
namespace {

TEST(StatisticsTest, StudentAndNormalMatchTheTables) {
  EXPECT_NEAR(NormalTail(1.959964), 0.025, 1e-7);
  EXPECT_NEAR(NormalQuantile(0.005), 2.575829, 1e-5);
  EXPECT_NEAR(StudentQuantile(0.05, 4), 2.776445, 1e-5);
  EXPECT_NEAR(StudentQuantile(0.01, 30), 2.749996, 1e-5);
  EXPECT_NEAR(StudentTail(12.7062, 1), 0.05, 1e-6);
}

TEST(StatisticsTest, MannWhitneyIsExactForFiveAgainstFive) {
  const auto shift = EstimateShift({1, 5, 2, 4, 3}, {11, 15, 12, 14, 13}, 0.99);
  ASSERT_TRUE(shift && shift->low);
  EXPECT_NEAR(shift->p, 2.0 / 252, 1e-12);
  EXPECT_DOUBLE_EQ(shift->estimate, 10);
  EXPECT_DOUBLE_EQ(*shift->low, 6);
  EXPECT_DOUBLE_EQ(*shift->high, 14);
}

TEST(StatisticsTest, FourAgainstFourCannotSayAnythingAtNinetyNinePercent) {
  const auto shift = EstimateShift({1, 2, 3, 4}, {11, 12, 13, 14}, 0.99);
  ASSERT_TRUE(shift);
  EXPECT_FALSE(shift->low);
  EXPECT_FALSE(shift->differs());
}

TEST(StatisticsTest, ConstantSeriesDoNotDiffer) {
  const auto shift = EstimateShift(std::vector<double>(20, 7), std::vector<double>(20, 7), 0.99);
  ASSERT_TRUE(shift);
  EXPECT_FALSE(shift->differs());
  EXPECT_EQ(shift->p, 1);
}

TEST(StatisticsTest, HolmMultipliesAndKeepsOrder) {
  EXPECT_EQ(HolmAdjust({0.01, 0.04, 0.03}), (std::vector<double>{0.03, 0.06, 0.06}));
}

std::vector<double> Series(std::mt19937_64* random, size_t count, double correlation, bool outliers) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  std::vector<double> values;
  double state = normal(*random);
  for (size_t i = 0; i < count; ++i) {
    values.push_back(100 + state + (outliers && uniform(*random) < 0.1 ? 50 : 0));
    state = correlation * state + std::sqrt(1 - correlation * correlation) * normal(*random);
  }
  return values;
}

double FalseAlarms(size_t count, double correlation, bool outliers) {
  std::mt19937_64 random(17);
  int alarms = 0;
  const int trials = 1000;
  for (int i = 0; i < trials; ++i) {
    const auto a = Series(&random, count, correlation, outliers);
    const auto b = Series(&random, count, correlation, outliers);
    alarms += EstimateShift(a, b, 0.99)->differs() ? 1 : 0;
  }
  return alarms / static_cast<double>(trials);
}

TEST(StatisticsTest, FalseAlarmsStayNearOnePercentWithoutCorrelation) {
  EXPECT_LE(FalseAlarms(5, 0, false), 0.02);
  EXPECT_LE(FalseAlarms(20, 0, false), 0.02);
  EXPECT_LE(FalseAlarms(20, 0, true), 0.02);
}

TEST(StatisticsTest, FalseAlarmsStayLowWhenStepsAreCorrelated) {
  EXPECT_LE(FalseAlarms(60, 0.5, false), 0.03);
  EXPECT_LE(FalseAlarms(60, 0.8, false), 0.06);
}

TEST(StatisticsTest, TheIntervalHoldsAPlantedShift) {
  std::mt19937_64 random(5);
  int held = 0;
  int found = 0;
  for (int i = 0; i < 500; ++i) {
    const auto a = Series(&random, 20, 0, true);
    auto b = Series(&random, 20, 0, true);
    for (double& value : b) value += 4;
    const auto shift = EstimateShift(a, b, 0.99);
    ASSERT_TRUE(shift->low);
    held += *shift->low <= 4 && 4 <= *shift->high ? 1 : 0;
    found += shift->differs() ? 1 : 0;
  }
  EXPECT_GE(held, 485);
  EXPECT_GE(found, 475);
}

}  // namespace
}  // namespace lockstep::comparison
