#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/wait_states/root_table.h"

namespace lockstep::analysis {
namespace {

using ::testing::ElementsAre;

const std::vector<int64_t> kSteps = {10, 11, 12, 13, 14, 15, 16, 17, 18};

TEST(StepPatternTest, EveryThirdStepIsPeriodic) {
  const StepPattern pattern = FindStepPattern({{11, 900}, {14, 950}, {17, 870}}, kSteps, 100);
  EXPECT_EQ(pattern.pattern, WaitPattern::kPeriodic);
  EXPECT_EQ(pattern.period_steps, 3);
  EXPECT_EQ(pattern.delay_ns, 2720);
}

TEST(StepPatternTest, AMissingPeriodIsIrregular) {
  EXPECT_EQ(FindStepPattern({{10, 900}, {12, 950}, {14, 870}}, kSteps, 100).pattern, WaitPattern::kIrregular);
}

TEST(StepPatternTest, MostStepsAreChronicAndOneIsOneOff) {
  EXPECT_EQ(FindStepPattern({{10, 900}, {11, 900}, {12, 950}, {15, 870}, {17, 800}}, kSteps, 100).pattern,
            WaitPattern::kChronic);
  EXPECT_EQ(FindStepPattern({{13, 900}}, kSteps, 100).pattern, WaitPattern::kOneOff);
}

TEST(StepPatternTest, StepsBelowTheFloorOrFarBelowTheWorstDoNotCount) {
  const StepPattern pattern = FindStepPattern({{10, 90}, {11, 150}, {12, 1000}}, kSteps, 100);
  EXPECT_THAT(pattern.steps, ElementsAre(12));
  EXPECT_EQ(pattern.delay_ns, 1000);
}

TEST(StepPatternTest, WithoutStepsThereIsDelayAndNoPattern) {
  const StepPattern pattern = FindStepPattern({{-1, 500}}, {}, 100);
  EXPECT_EQ(pattern.pattern, WaitPattern::kIrregular);
  EXPECT_TRUE(pattern.steps.empty());
  EXPECT_EQ(pattern.delay_ns, 500);
}

}  // namespace
}  // namespace lockstep::analysis
