#include "base/trim.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(TrimTest, OnlyTheEndsLoseTheirBlanks) {
  EXPECT_EQ(Trimmed(" \t a \t b\t "), "a \t b");
  EXPECT_EQ(Trimmed("a"), "a");
  EXPECT_EQ(Trimmed(" \t "), "");
  EXPECT_EQ(Trimmed(""), "");
}

TEST(TrimTest, WhatIsBlankIsTheCallersToSay) {
  EXPECT_EQ(Trimmed(" a\r"), "a\r");
  EXPECT_EQ(Trimmed(" a\r\n", " \t\r\n"), "a");
}

}  // namespace
}  // namespace lockstep
