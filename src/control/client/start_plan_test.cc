#include "control/client/start_plan.h"

#include <gtest/gtest.h>

namespace lockstep::control {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kMillisecond = 1'000'000;

Process Polling(int64_t period_ns, const char* device) {
  Process process;
  process.poll_period_ns = period_ns;
  process.device = device;
  return process;
}

TEST(MeasureClockTest, TheQuickestExchangeCounts) {
  const auto clock = MeasureClock({{100, 5100, 300}, {1000, 6010, 1020}, {2000, 9000, 2400}});
  ASSERT_TRUE(clock);
  EXPECT_EQ(clock->offset_ns, 5000);
  EXPECT_EQ(clock->uncertainty_ns, 10);
  EXPECT_EQ(clock->Correction(), 5000);
}

TEST(MeasureClockTest, WhatCannotBeToldFromZeroIsNotCorrected) {
  EXPECT_EQ((ClockDifference{.offset_ns = -40, .uncertainty_ns = 50}.Correction()), 0);
  EXPECT_EQ((ClockDifference{.offset_ns = -60, .uncertainty_ns = 50}.Correction()), -60);
}

TEST(MeasureClockTest, AClockThatWentBackIsNoMeasurement) { EXPECT_FALSE(MeasureClock({{300, 5, 200}})); }

TEST(ComputeLeadTest, AboutThirteenSecondsWithTheUsualPollAndADevice) {
  const LeadNeeds needs = ComputeLead({Polling(5 * kSecond, "cuda"), Polling(kSecond, "cpu")}, std::nullopt, 0, 0);
  EXPECT_EQ(needs.least_ns, 12 * kSecond);
  EXPECT_EQ(needs.lead_ns, 13 * kSecond);
}

TEST(ComputeLeadTest, ShortWithFastPollsAndNoDevice) {
  const LeadNeeds needs = ComputeLead({Polling(kSecond, "cpu")}, std::nullopt, 5 * kMillisecond, 2 * kMillisecond);
  EXPECT_EQ(needs.least_ns, 4 * kSecond + 12 * kMillisecond);
}

TEST(ComputeLeadTest, AWarmupThatWasAskedForCounts) {
  EXPECT_EQ(ComputeLead({Polling(kSecond, "cuda")}, 0, 0, 0).least_ns, 3 * kSecond);
}

TEST(PlanDeliveryTest, FallsIntoTheLargestGap) {
  // Polls at 0.1, 0.2, 0.3 of every second: the gap from 0.3 to 1.1 holds the moment, and all fetch within 0.2 s.
  const std::vector<PollPhase> phases = {
      {10 * kSecond + 100 * kMillisecond, kSecond},
      {10 * kSecond + 300 * kMillisecond, kSecond},
      {10 * kSecond + 200 * kMillisecond, kSecond},
  };
  for (int64_t earliest = 11 * kSecond; earliest < 12 * kSecond; earliest += 37 * kMillisecond) {
    const Delivery delivery = PlanDelivery(phases, earliest);
    EXPECT_EQ(delivery.spread_ns, 200 * kMillisecond) << earliest;
    EXPECT_GE(delivery.from_unix_ns, earliest);
    EXPECT_LT(delivery.last_fetch_unix_ns, earliest + 2500 * kMillisecond);
    const int64_t phase = delivery.from_unix_ns % kSecond;
    EXPECT_TRUE(phase > 300 * kMillisecond || phase < 100 * kMillisecond) << phase;
  }
}

TEST(PlanDeliveryTest, KeepsItsDistanceToPolls) {
  const std::vector<PollPhase> phases = {{10 * kSecond, 5 * kSecond}, {11 * kSecond, 5 * kSecond}};
  EXPECT_EQ(PlanDelivery(phases, 10 * kSecond + 500 * kMillisecond).from_unix_ns, 13 * kSecond);
}

TEST(PlanDeliveryTest, OneProcessWaitsForNothing) {
  EXPECT_EQ(PlanDelivery({{10 * kSecond, 5 * kSecond}}, 11 * kSecond).from_unix_ns, 11 * kSecond);
  EXPECT_EQ(PlanDelivery({}, 11 * kSecond).from_unix_ns, 11 * kSecond);
}

TEST(PlanDeliveryTest, UnequalPeriodsAreBoundedByTheLongest) {
  const std::vector<PollPhase> phases = {{10 * kSecond, 5 * kSecond}, {10 * kSecond + 300 * kMillisecond, kSecond}};
  const Delivery delivery = PlanDelivery(phases, 11 * kSecond);
  EXPECT_LE(delivery.spread_ns, 700 * kMillisecond);
}

TEST(PlanDeliveryTest, NoMultipleOfTheRoundUpFallsBetweenFetches) {
  const std::vector<PollPhase> phases = {{10 * kSecond, kSecond}, {10 * kSecond + 300 * kMillisecond, kSecond}};
  // Multiples every 3 s, at 12.1, 15.1, ...; the polls that come first, at 12.0 and 12.3, lie on both sides of one.
  const StepClock steps = {9 * kSecond + 100 * kMillisecond, 30 * kMillisecond, 100};
  const Delivery delivery = PlanDelivery(phases, 11 * kSecond + 400 * kMillisecond, steps);
  const int64_t first = delivery.last_fetch_unix_ns - delivery.spread_ns;
  const int64_t cycle = 3 * kSecond;
  EXPECT_EQ((first - steps.boundary_unix_ns) / cycle, (delivery.last_fetch_unix_ns - steps.boundary_unix_ns) / cycle);
  EXPECT_EQ(delivery.spread_ns, 300 * kMillisecond);
}

TEST(ChooseRoundupTest, IsFourSpreadsLongAndRound) {
  EXPECT_EQ(ChooseRoundup(700 * kMillisecond, 100 * kMillisecond, 1), 50);
  EXPECT_EQ(ChooseRoundup(0, 100 * kMillisecond, 10), 10);
  EXPECT_EQ(ChooseRoundup(5 * kSecond, kMillisecond, 10), 50'000);
  EXPECT_EQ(ChooseRoundup(5 * kSecond, 0, 10), 1'000'000);
}

}  // namespace
}  // namespace lockstep::control
