#include "present/query/query_error.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "present/query/testing/asked_run.h"

namespace lockstep::query {
namespace {

TEST(QueryErrorTest, TheLineOfThePlaceIsMarked) {
  EXPECT_EQ(MarkedLine("SELECT x", 7), "SELECT x\n       ^");
  EXPECT_EQ(MarkedLine("a\nbcd\ne", 3), "bcd\n ^");
  EXPECT_EQ(MarkedLine("a\nb", 1), "a\n ^");
  EXPECT_EQ(MarkedLine("a\nb", 2), "b\n^");
  EXPECT_EQ(MarkedLine("", 5), "\n^");
  EXPECT_EQ(MarkedLine("a\tb\x01", 2), "a b?\n  ^");
}

TEST(QueryErrorTest, EveryPlaceOfAnyTextCanBeMarked) {
  const std::string sql = "\n\nSELECT\n'\xff\xe4\xb8\xad' \n" + std::string(300, 'x') + "\n";
  for (size_t offset = 0; offset <= sql.size() + 1; ++offset) {
    const std::string marked = MarkedLine(sql, offset);
    EXPECT_EQ(std::count(marked.begin(), marked.end(), '\n'), 1) << offset;
    EXPECT_EQ(marked.back(), '^');
  }
}

TEST(QueryErrorTest, UnknownNamesComeWithThoseThereAre) {
  testing::AskedRun asked(testing::RandomRun(1, 5));
  asked.Ask("SELECT e.durration_ns FROM events AS e");
  ASSERT_TRUE(asked.error());
  EXPECT_EQ(asked.error()->unknown_name, "durration_ns");
  const auto& known = asked.error()->known;
  EXPECT_NE(std::find(known.begin(), known.end(), "duration_ns"), known.end());
  EXPECT_EQ(std::find(known.begin(), known.end(), "busbw_bytes_per_s"), known.end());  // not of this table
  EXPECT_TRUE(asked.error()->offset);
}

}  // namespace
}  // namespace lockstep::query
