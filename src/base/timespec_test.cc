#include "base/timespec.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(TimespecTest, NanosecondsGoThereAndBack) {
  EXPECT_EQ(Nanoseconds({.tv_sec = 3, .tv_nsec = 7}), 3'000'000'007);
  EXPECT_EQ(Nanoseconds({.tv_sec = -2, .tv_nsec = 999'999'999}), -1'000'000'001);
  for (const int64_t ns : {int64_t{0}, int64_t{999'999'999}, kSecondNs, int64_t{1'700'000'000'123'456'789}}) {
    EXPECT_EQ(Nanoseconds(Timespec(ns)), ns);
    EXPECT_LT(Timespec(ns).tv_nsec, kSecondNs);
  }
}

TEST(TimespecTest, AClockGoesOnAndOneThatIsNoneSaysZero) {
  const int64_t before_ns = ClockNs(CLOCK_MONOTONIC);
  EXPECT_GT(before_ns, 0);
  EXPECT_GE(ClockNs(CLOCK_MONOTONIC), before_ns);
  EXPECT_EQ(ClockNs(9999), 0);
}

}  // namespace
}  // namespace lockstep
