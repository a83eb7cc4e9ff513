#include "node/control/client/same_steps.h"

#include <gmock/gmock.h>

#include "base/nanoseconds.h"

namespace lockstep::control {
namespace {

constexpr int64_t kNoon = 1'795'348'800'000'000'000;
using Verdict = StepAgreement::Verdict;

StepTrace Window(int64_t start_ms, int64_t length_ms, uint32_t optimizer_steps = 5) {
  StepTrace trace;
  trace.facts.start_unix_ns = kNoon + start_ms * kMillisecondNs;
  trace.facts.end_unix_ns = kNoon + (start_ms + length_ms) * kMillisecondNs;
  trace.facts.optimizer_step_count = optimizer_steps;
  return trace;
}

TEST(CompareStepsTest, StartsWithinHalfAMultipleAreTheSameSteps) {
  const StepAgreement same = CompareSteps({Window(0, 100), Window(8, 100), Window(3, 110)}, 5, 10);
  EXPECT_EQ(same.verdict, Verdict::kSame);
  EXPECT_EQ(same.step_ns, 20 * kMillisecondNs);
  EXPECT_EQ(same.spread_ns, 8 * kMillisecondNs);
  EXPECT_EQ(same.first_start_ns, kNoon);
}

TEST(CompareStepsTest, NumbersOfStepsDecideWhereAllTracesHaveThem) {
  const auto from = [](int64_t step, int64_t start_ms) {
    StepTrace trace = Window(start_ms, 501, 7);
    trace.facts.first_step = step;
    return trace;
  };
  EXPECT_EQ(CompareSteps({from(50, 0), from(50, 9000)}, 5, 10).verdict, Verdict::kSame);
  EXPECT_EQ(CompareSteps({from(50, 0), from(60, 1)}, 5, 10).verdict, Verdict::kApart);
  StepTrace cut = from(50, 0);
  cut.facts.step_count = 3;
  EXPECT_EQ(CompareSteps({from(50, 0), cut}, 5, 10).verdict, Verdict::kApart);
  EXPECT_THAT(CompareSteps({from(50, 0), cut}, 5, 10).reason, ::testing::HasSubstr("3 of 5 steps"));
  EXPECT_FALSE(BecameDuration(from(50, 0).facts, 5));
  EXPECT_EQ(CompareSteps({from(50, 0), Window(9000, 500)}, 5, 10).verdict, Verdict::kApart) << "by time again";
}

TEST(CompareStepsTest, AMultipleLaterIsApart) {
  EXPECT_EQ(CompareSteps({Window(0, 100), Window(200, 100)}, 5, 10).verdict, Verdict::kApart);
}

TEST(CompareStepsTest, ClocksAreAllowedFor) {
  StepTrace ahead = Window(5000, 100);
  ahead.clock_correction_ns = 4995 * kMillisecondNs;
  EXPECT_EQ(CompareSteps({Window(0, 100), ahead}, 5, 10).verdict, Verdict::kSame);
  ahead.clock_error_ns = 60 * kMillisecondNs;
  const StepAgreement unknown = CompareSteps({Window(0, 100), ahead}, 5, 10);
  EXPECT_EQ(unknown.verdict, Verdict::kUnknown);
  EXPECT_THAT(unknown.reason, ::testing::HasSubstr("clocks"));
}

TEST(CompareStepsTest, ATraceOfALengthOfTimeIsSetAside) {
  const StepAgreement steps = CompareSteps({Window(0, 100), Window(-9000, 501, 0), Window(2, 100)}, 5, 10);
  EXPECT_EQ(steps.verdict, Verdict::kSame);
  EXPECT_THAT(steps.without_steps, ::testing::ElementsAre(1u));
}

TEST(CompareStepsTest, StepsThatLastHalfASecondByChanceAreSteps) {
  EXPECT_FALSE(BecameDuration(Window(0, 501, 5).facts, 5));
  EXPECT_FALSE(BecameDuration(Window(0, 501, 10).facts, 5));
  EXPECT_TRUE(BecameDuration(Window(0, 501, 7).facts, 5));
  EXPECT_FALSE(BecameDuration(Window(0, 700, 7).facts, 5));
}

TEST(CompareStepsTest, OverloadedProcessorsBeginLateAndEndLate) {
  EXPECT_TRUE(BecameDuration(Window(0, 497, 0).facts, 3));
  EXPECT_TRUE(BecameDuration(Window(0, 1100, 0).facts, 3));
  EXPECT_FALSE(BecameDuration(Window(0, 40, 0).facts, 3));  // Steps that no optimizer counts.
  EXPECT_FALSE(BecameDuration(Window(0, 7000, 0).facts, 3));
}

TEST(CompareStepsTest, WithoutWindowsNothingIsSaid) {
  EXPECT_EQ(CompareSteps({StepTrace{}, StepTrace{}}, 5, 10).verdict, Verdict::kUnknown);
  EXPECT_EQ(CompareSteps({Window(0, 100)}, 5, 10).verdict, Verdict::kUnknown);
  EXPECT_EQ(CompareSteps({Window(0, 100), Window(0, 100), StepTrace{}}, 5, 10).verdict, Verdict::kUnknown);
}

}  // namespace
}  // namespace lockstep::control
