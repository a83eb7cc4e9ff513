#include "node/control/client/start_plan.h"

#include <gtest/gtest.h>

#include "base/nanoseconds.h"

namespace lockstep::control {
namespace {

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
  const LeadNeeds needs = ComputeLead({Polling(5 * kSecondNs, "cuda"), Polling(kSecondNs, "cpu")}, std::nullopt, 0, 0);
  EXPECT_EQ(needs.least_ns, 12 * kSecondNs);
  EXPECT_EQ(needs.lead_ns, 13 * kSecondNs);
}

TEST(ComputeLeadTest, ShortWithFastPollsAndNoDevice) {
  const LeadNeeds needs =
      ComputeLead({Polling(kSecondNs, "cpu")}, std::nullopt, 5 * kMillisecondNs, 2 * kMillisecondNs);
  EXPECT_EQ(needs.least_ns, 4 * kSecondNs + 12 * kMillisecondNs);
}

TEST(ComputeLeadTest, AWarmupThatWasAskedForCounts) {
  EXPECT_EQ(ComputeLead({Polling(kSecondNs, "cuda")}, 0, 0, 0).least_ns, 3 * kSecondNs);
}

TEST(PlanDeliveryTest, FallsIntoTheLargestGap) {
  // Polls at 0.1, 0.2, 0.3 of every second: the gap from 0.3 to 1.1 holds the moment, and all fetch within 0.2 s.
  const std::vector<PollPhase> phases = {
      {10 * kSecondNs + 100 * kMillisecondNs, kSecondNs},
      {10 * kSecondNs + 300 * kMillisecondNs, kSecondNs},
      {10 * kSecondNs + 200 * kMillisecondNs, kSecondNs},
  };
  for (int64_t earliest = 11 * kSecondNs; earliest < 12 * kSecondNs; earliest += 37 * kMillisecondNs) {
    const Delivery delivery = PlanDelivery(phases, earliest);
    EXPECT_EQ(delivery.spread_ns, 200 * kMillisecondNs) << earliest;
    EXPECT_GE(delivery.from_unix_ns, earliest);
    EXPECT_LT(delivery.last_fetch_unix_ns, earliest + 2500 * kMillisecondNs);
    const int64_t phase = delivery.from_unix_ns % kSecondNs;
    EXPECT_TRUE(phase > 300 * kMillisecondNs || phase < 100 * kMillisecondNs) << phase;
  }
}

TEST(PlanDeliveryTest, KeepsItsDistanceToPolls) {
  const std::vector<PollPhase> phases = {{10 * kSecondNs, 5 * kSecondNs}, {11 * kSecondNs, 5 * kSecondNs}};
  EXPECT_EQ(PlanDelivery(phases, 10 * kSecondNs + 500 * kMillisecondNs).from_unix_ns, 13 * kSecondNs);
}

TEST(PlanDeliveryTest, OneProcessWaitsForNothing) {
  EXPECT_EQ(PlanDelivery({{10 * kSecondNs, 5 * kSecondNs}}, 11 * kSecondNs).from_unix_ns, 11 * kSecondNs);
  EXPECT_EQ(PlanDelivery({}, 11 * kSecondNs).from_unix_ns, 11 * kSecondNs);
}

TEST(PlanDeliveryTest, UnequalPeriodsAreBoundedByTheLongest) {
  const std::vector<PollPhase> phases = {{10 * kSecondNs, 5 * kSecondNs},
                                         {10 * kSecondNs + 300 * kMillisecondNs, kSecondNs}};
  const Delivery delivery = PlanDelivery(phases, 11 * kSecondNs);
  EXPECT_LE(delivery.spread_ns, 700 * kMillisecondNs);
}

TEST(PlanDeliveryTest, NoMultipleOfTheRoundUpFallsBetweenFetches) {
  const std::vector<PollPhase> phases = {{10 * kSecondNs, kSecondNs},
                                         {10 * kSecondNs + 300 * kMillisecondNs, kSecondNs}};
  // Multiples every 3 s, at 12.1, 15.1, ...; the polls that come first, at 12.0 and 12.3, lie on both sides of one.
  const StepClock steps = {9 * kSecondNs + 100 * kMillisecondNs, 30 * kMillisecondNs, 100};
  const Delivery delivery = PlanDelivery(phases, 11 * kSecondNs + 400 * kMillisecondNs, steps);
  const int64_t first = delivery.last_fetch_unix_ns - delivery.spread_ns;
  const int64_t cycle = 3 * kSecondNs;
  EXPECT_EQ((first - steps.boundary_unix_ns) / cycle, (delivery.last_fetch_unix_ns - steps.boundary_unix_ns) / cycle);
  EXPECT_EQ(delivery.spread_ns, 300 * kMillisecondNs);
}

TEST(ChooseRoundupTest, IsFourSpreadsLongAndRound) {
  EXPECT_EQ(ChooseRoundup(700 * kMillisecondNs, 100 * kMillisecondNs, 1), 50);
  EXPECT_EQ(ChooseRoundup(0, 100 * kMillisecondNs, 10), 10);
  EXPECT_EQ(ChooseRoundup(5 * kSecondNs, kMillisecondNs, 10), 50'000);
  EXPECT_EQ(ChooseRoundup(5 * kSecondNs, 0, 10), 1'000'000);
}

}  // namespace
}  // namespace lockstep::control
