#include "present/report/bars.h"

#include <gtest/gtest.h>

#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

TEST(StackedBarTest, IsExactlyAsWideAsAsked) {
  const Style style{false, false};
  for (int width = 1; width < 50; ++width) {
    for (const double part : {0.0, 0.001, 0.333, 0.5, 1.0}) {
      const std::string bar = StackedBar({{Paint::kCompute, part}, {Paint::kIdle, 1 - part}}, 1, width, style);
      EXPECT_EQ(DisplayWidth(bar), width);
    }
  }
}

TEST(StackedBarTest, SmallPartIsNotHidden) {
  const std::string bar = StackedBar({{Paint::kCompute, 1}, {Paint::kIdle, 99}}, 100, 10, Style{false, false});
  EXPECT_EQ(bar, "#.........");
}

TEST(StackedBarTest, NothingToShowIsBlank) {
  EXPECT_EQ(StackedBar({{Paint::kCompute, 1}}, 0, 4, Style{false, false}), "    ");
}

TEST(PlainBarTest, LengthIsTheShare) {
  EXPECT_EQ(PlainBar(Paint::kCompute, 0.5, 1, 8, Style{false, false}), "####");
  EXPECT_EQ(PlainBar(Paint::kCompute, 0, 1, 8, Style{false, false}), "");
  EXPECT_EQ(PlainBar(Paint::kIdle, 5, 1, 4, Style{false, false}), "....");
}

}  // namespace
}  // namespace lockstep::report
