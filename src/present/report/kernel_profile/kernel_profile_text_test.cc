#include <gtest/gtest.h>

#include "present/report/kernel_profile/kernel_profile_report.h"

namespace lockstep::report {
namespace {

TEST(FormatFlopRateTest, NothingHasNoUnit) {
  EXPECT_EQ(FormatFlopRate(0), "0");
  EXPECT_EQ(FormatFlopRate(4.98e12), "4.98 TFLOP/s");
  EXPECT_EQ(FormatFlopRate(1), "1.00 FLOP/s");
}

}  // namespace
}  // namespace lockstep::report
