#include "programs/cli/ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(ParseRangesTest, NumbersAndRangesMayBeMixed) {
  const auto ranges = ParseRanges("0-3,7,9-9", "--ranks");
  ASSERT_TRUE(ranges);
  EXPECT_THAT(*ranges, ElementsAre(Pair(0, 3), Pair(7, 7), Pair(9, 9)));
}

TEST(ParseRangesTest, AnythingElseIsRefused) {
  for (const char* text : {"", ",", "1,,2", "3-1", "a", "1-", "-1", "1-2-3", " 1", "99999999999999999999"}) {
    EXPECT_FALSE(ParseRanges(text, "--ranks")) << text;
  }
}

TEST(ParseTimeTest, TimesAreExact) {
  EXPECT_EQ(*ParseTime("1.5s", "--from"), 1'500'000'000);
  EXPECT_EQ(*ParseTime("200ms", "--from"), 200'000'000);
  EXPECT_EQ(*ParseTime("0.000001s", "--from"), 1'000);
  EXPECT_EQ(*ParseTime("0.123456789s", "--from"), 123'456'789);
  EXPECT_EQ(*ParseTime("0.5m", "--from"), 30'000'000'000);
  EXPECT_EQ(*ParseTime("7ns", "--from"), 7);
}

TEST(ParseTimeTest, TimesWithoutUnitOrSenseAreRefused) {
  for (const char* text : {"", "1", "s", "-1s", "1h", "1.2.3s", "1e3s", ".s", "9999999999999999s"}) {
    EXPECT_FALSE(ParseTime(text, "--from")) << text;
  }
}

}  // namespace
}  // namespace lockstep::cli
