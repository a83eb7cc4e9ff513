#include "ingest/torch_trace/decimal.h"

#include <gtest/gtest.h>

namespace lockstep::ingest {
namespace {

TEST(DecimalTest, MicrosecondsBecomeExactNanoseconds) {
  EXPECT_EQ(MicrosecondsToNs("0"), 0);
  EXPECT_EQ(MicrosecondsToNs("12"), 12'000);
  EXPECT_EQ(MicrosecondsToNs("4458677009853.422"), 4'458'677'009'853'422);
  EXPECT_EQ(MicrosecondsToNs("1712195495406752.797"), 1'712'195'495'406'752'797);  // More digits than a double holds.
  EXPECT_EQ(MicrosecondsToNs("5.1"), 5'100);
  EXPECT_EQ(MicrosecondsToNs("-3.25"), -3'250);
}

TEST(DecimalTest, DigitsPastTheNanosecondAreRounded) {
  EXPECT_EQ(MicrosecondsToNs("1.0004"), 1'000);
  EXPECT_EQ(MicrosecondsToNs("1.0005"), 1'001);
  EXPECT_EQ(MicrosecondsToNs("0.00049"), 0);
}

TEST(DecimalTest, ExponentsMoveThePoint) {
  EXPECT_EQ(MicrosecondsToNs("1.5e3"), 1'500'000);
  EXPECT_EQ(MicrosecondsToNs("1.5E+3"), 1'500'000);
  EXPECT_EQ(MicrosecondsToNs("1500e-3"), 1'500);
  EXPECT_EQ(MicrosecondsToNs("1e-9"), 0);
}

TEST(DecimalTest, WhatIsNoNumberOrTooLargeIsAbsent) {
  for (const char* text : {"", "-", ".5", "1.2.3", "abc", "1e", "9e99", "99999999999999999999", "1x", "0x10"}) {
    EXPECT_FALSE(MicrosecondsToNs(text).has_value()) << text;
  }
}

TEST(DecimalTest, IntegersMayHaveAFractionOfZeros) {
  EXPECT_EQ(ParseInt64("-7"), -7);
  EXPECT_EQ(ParseInt64("5.0"), 5);
  EXPECT_FALSE(ParseInt64("5.5").has_value());
  EXPECT_FALSE(ParseInt64("9223372036854775808").has_value());
  EXPECT_EQ(ParseUint64("10159970886766084423"), 10'159'970'886'766'084'423U);
}

}  // namespace
}  // namespace lockstep::ingest
