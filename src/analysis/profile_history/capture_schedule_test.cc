#include "analysis/profile_history/capture_schedule.h"

#include <gtest/gtest.h>

namespace lockstep::profile_history {
namespace {

TEST(CaptureScheduleTest, CapturesBeginEachPeriodFromTheFirstLookOn) {
  CaptureSchedule schedule(100);
  EXPECT_EQ(schedule.Look(1000, JobState::kMoving, false), ScheduleStep::kStart);
  EXPECT_EQ(schedule.Look(1001, JobState::kMoving, false), ScheduleStep::kNothing);
  EXPECT_EQ(schedule.Look(1099, JobState::kMoving, false), ScheduleStep::kNothing);
  EXPECT_EQ(schedule.Look(1103, JobState::kMoving, false), ScheduleStep::kStart);
  EXPECT_EQ(schedule.Look(1199, JobState::kMoving, false), ScheduleStep::kNothing) << "the period does not drift";
  EXPECT_EQ(schedule.Look(1200, JobState::kMoving, false), ScheduleStep::kStart);
}

TEST(CaptureScheduleTest, OneThatTakesLongerThanThePeriodDoesNotPileUp) {
  CaptureSchedule schedule(100);
  EXPECT_EQ(schedule.Look(0, JobState::kMoving, false), ScheduleStep::kStart);
  EXPECT_EQ(schedule.Look(100, JobState::kMoving, true), ScheduleStep::kSkipOverrun);
  EXPECT_EQ(schedule.Look(150, JobState::kMoving, true), ScheduleStep::kNothing);
  EXPECT_EQ(schedule.Look(450, JobState::kMoving, true), ScheduleStep::kSkipOverrun) << "one look, one that is told";
  EXPECT_EQ(schedule.Look(460, JobState::kMoving, false), ScheduleStep::kNothing);
  EXPECT_EQ(schedule.Look(500, JobState::kMoving, false), ScheduleStep::kStart);
}

TEST(CaptureScheduleTest, ASilentJobIsNotCaptured) {
  CaptureSchedule schedule(100);
  EXPECT_EQ(schedule.Look(0, JobState::kSilent, false), ScheduleStep::kSkipSilent);
  EXPECT_EQ(schedule.Look(50, JobState::kMoving, false), ScheduleStep::kNothing);
  EXPECT_EQ(schedule.Look(100, JobState::kMoving, false), ScheduleStep::kStart);
}

TEST(CaptureScheduleTest, ASlowStepIsWaitedForUpToThePeriod) {
  CaptureSchedule schedule(100);
  EXPECT_EQ(schedule.Look(0, JobState::kStill, false), ScheduleStep::kNothing);
  EXPECT_EQ(schedule.Look(60, JobState::kMoving, false), ScheduleStep::kStart);
  EXPECT_EQ(schedule.Look(100, JobState::kStill, false), ScheduleStep::kNothing);
  EXPECT_EQ(schedule.Look(200, JobState::kStill, false), ScheduleStep::kSkipSilent);
}

}  // namespace
}  // namespace lockstep::profile_history
