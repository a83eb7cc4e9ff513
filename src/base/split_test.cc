#include "base/split.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using Parts = std::vector<std::string_view>;

TEST(SplitTest, WordsAreNeverEmpty) {
  EXPECT_EQ(SplitAt(" a\t b  "), (Parts{"a", "b"}));
  EXPECT_EQ(SplitAt("a"), (Parts{"a"}));
  EXPECT_EQ(SplitAt(" \t"), Parts{});
  EXPECT_EQ(SplitAt(""), Parts{});
}

TEST(SplitTest, SeparatorsAreTheCallersToName) {
  EXPECT_EQ(SplitAt("a b,,c,", ","), (Parts{"a b", "c"}));
  EXPECT_EQ(SplitAt("1 2\n3", " \n"), (Parts{"1", "2", "3"}));
}

TEST(SplitTest, LinesLoseTheirEndsAndMayBeEmpty) {
  EXPECT_EQ(SplitLines("a\r\n\nb"), (Parts{"a", "", "b"}));
  EXPECT_EQ(SplitLines("a\n"), (Parts{"a"}));
  EXPECT_EQ(SplitLines(""), Parts{});
}

}  // namespace
}  // namespace lockstep
