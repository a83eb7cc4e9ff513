#include "base/split.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using Parts = std::vector<std::string_view>;

TEST(SplitTest, WordsAreNeverEmpty) {
  EXPECT_EQ(SplitWords(" a\t b  "), (Parts{"a", "b"}));
  EXPECT_EQ(SplitWords("a"), (Parts{"a"}));
  EXPECT_EQ(SplitWords(" \t"), Parts{});
  EXPECT_EQ(SplitWords(""), Parts{});
}

TEST(SplitTest, SeparatorsAreTheCallersToName) {
  EXPECT_EQ(SplitWords("a b,,c,", ","), (Parts{"a b", "c"}));
  EXPECT_EQ(SplitWords("1 2\n3", " \n"), (Parts{"1", "2", "3"}));
}

TEST(SplitTest, LinesLoseTheirEndsAndMayBeEmpty) {
  EXPECT_EQ(SplitLines("a\r\n\nb"), (Parts{"a", "", "b"}));
  EXPECT_EQ(SplitLines("a\n"), (Parts{"a"}));
  EXPECT_EQ(SplitLines(""), Parts{});
}

}  // namespace
}  // namespace lockstep
