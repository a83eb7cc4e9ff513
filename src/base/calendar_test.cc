#include "base/calendar.h"

#include <gtest/gtest.h>

#include "base/nanoseconds.h"

namespace lockstep {
namespace {

constexpr int64_t kDayNs = 24 * kHourNs;

TEST(CalendarTest, DaysAreCountedOverLeapYears) {
  EXPECT_EQ(DaysFromEpoch(1970, 1, 1), 0);
  EXPECT_EQ(DaysFromEpoch(1969, 12, 31), -1);
  EXPECT_EQ(DaysFromEpoch(2000, 2, 29) + 1, DaysFromEpoch(2000, 3, 1));
  EXPECT_EQ(DaysFromEpoch(1900, 2, 28) + 1, DaysFromEpoch(1900, 3, 1));
  EXPECT_EQ(DaysFromEpoch(2026, 11, 29), 20'786);
}

TEST(CalendarTest, DaysAndTheSystemsCalendarAgree) {
  for (int64_t day = 0; day < 80'000; day += 17) {
    const std::tm t = Utc(day * kDayNs);
    EXPECT_EQ(DaysFromEpoch(t.tm_year + 1900, t.tm_mon + 1, t.tm_mday), day);
  }
}

TEST(CalendarTest, ANameHoldsWholeSeconds) {
  EXPECT_EQ(UtcName(0), "19700101T000000Z");
  EXPECT_EQ(UtcName(1'700'000'000'999'999'999), "20231114T221320Z");
}

}  // namespace
}  // namespace lockstep
