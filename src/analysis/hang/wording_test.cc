#include "analysis/hang/wording.h"

#include <gtest/gtest.h>

#include "base/nanoseconds.h"

namespace lockstep::hang {
namespace {

TEST(WordingTest, LongTimesAreSaidInHoursAndDays) {
  constexpr int64_t kHour = 3600 * kSecondNs;
  EXPECT_EQ(Seconds(46 * kSecondNs), "46 s");
  EXPECT_EQ(Seconds(10 * kHour - kSecondNs), "35999 s");
  EXPECT_EQ(Seconds(10 * kHour), "10 hours");
  EXPECT_EQ(Seconds(48 * kHour), "2 days");
  EXPECT_EQ(Seconds(int64_t{37'047'134} * kSecondNs), "428 days");
}

}  // namespace
}  // namespace lockstep::hang
