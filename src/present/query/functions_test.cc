#include "present/query/functions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "present/query/testing/asked_run.h"

namespace lockstep::query {
namespace {

using testing::AskedRun;
using testing::RandomRun;

class FunctionsTest : public ::testing::Test {
 protected:
  std::string One(const std::string& expression) { return asked_.AskOne("SELECT " + expression); }
  AskedRun asked_{RandomRun(1, 5)};
};

TEST_F(FunctionsTest, OverlapIsWhatIntervalsShare) {
  EXPECT_EQ(One("overlap_ns(0, 10, 5, 20)"), "5");
  EXPECT_EQ(One("overlap_ns(5, 20, 0, 10)"), "5");
  EXPECT_EQ(One("overlap_ns(0, 10, 10, 20)"), "0");
  EXPECT_EQ(One("overlap_ns(0, 10, 15, 20)"), "0");
  EXPECT_EQ(One("overlap_ns(0, 10, 2, 3)"), "1");
  EXPECT_EQ(One("overlap_ns(0, NULL, 2, 3)"), "NULL");
  EXPECT_EQ(One("overlap_ns(-9223372036854775807, 9223372036854775807, -9223372036854775807, 9223372036854775807)"),
            "9223372036854775807");
}

TEST_F(FunctionsTest, UnionsAndIntersectionsMatchAGridOfNanoseconds) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    constexpr int kGrid = 60;
    bool left[kGrid] = {};
    bool right[kGrid] = {};
    std::string values;
    const int count = 1 + static_cast<int>(random() % 12);
    for (int i = 0; i < count; ++i) {
      const int start = static_cast<int>(random() % 50);
      const int end = start + static_cast<int>(random() % 10);
      const bool side = random() % 2 == 0;
      values += fmt::format("{}({}, {}, {})", i == 0 ? "" : ", ", start, end, side ? 1 : 0);
      for (int t = start; t < end; ++t) (side ? left : right)[t] = true;
    }
    int either = 0;
    int both = 0;
    for (int t = 0; t < kGrid; ++t) {
      either += left[t] || right[t] ? 1 : 0;
      both += left[t] && right[t] ? 1 : 0;
    }
    const auto rows = asked_.Ask("WITH v(s, e, side) AS (VALUES " + values +
                                 ") SELECT union_ns(s, e), intersect_ns(s, e, side) FROM v");
    ASSERT_EQ(rows.size(), 1u) << values;
    EXPECT_EQ(rows[0][0], std::to_string(either)) << values;
    EXPECT_EQ(rows[0][1], std::to_string(both)) << values;
  }
}

TEST_F(FunctionsTest, AggregatesOfNothingAreNull) {
  for (const char* call : {"union_ns(start_ns, end_ns)", "intersect_ns(start_ns, end_ns, 1)", "median(duration_ns)",
                           "percentile(duration_ns, 9)", "stddev(duration_ns)"})
    EXPECT_EQ(One(std::string(call) + " FROM events WHERE 0"), "NULL") << call;
  EXPECT_EQ(One("median(column1) FROM (VALUES (NULL), ('text'))"), "NULL");
  EXPECT_EQ(One("union_ns(NULL, 5)"), "NULL");
}

TEST_F(FunctionsTest, PercentilesAreLinearBetweenValues) {
  const std::string values = " FROM (VALUES (4), (1), (3), (2), (NULL))";
  EXPECT_EQ(One("median(column1)" + values), "2.5");
  EXPECT_EQ(One("percentile(column1, 0)" + values), "1");
  EXPECT_EQ(One("percentile(column1, 100)" + values), "4");
  EXPECT_EQ(One("percentile(column1, 25)" + values), "1.75");
  EXPECT_EQ(One("median(5)"), "5");
  asked_.Ask("SELECT percentile(column1, 101)" + values);
  EXPECT_TRUE(asked_.error());
  asked_.Ask("SELECT percentile(column1, NULL || 'x')" + values);
}

TEST_F(FunctionsTest, DeviationIsTheSamples) {
  EXPECT_EQ(One("stddev(column1) FROM (VALUES (2), (4), (4), (4), (5), (5), (7), (9))").substr(0, 6), "2.1380");
  EXPECT_EQ(One("stddev(3)"), "0");
}

TEST_F(FunctionsTest, FormattingIsTheReports) {
  EXPECT_EQ(One("format_ns(1234567)"), "1.23 ms");
  EXPECT_EQ(One("format_ns(1234567.8)"), "1.23 ms");
  EXPECT_EQ(One("format_ns(NULL)"), "NULL");
  EXPECT_EQ(One("format_ns(1e300) IS NOT NULL"), "1");
  EXPECT_EQ(One("format_ns(-9223372036854775808) IS NOT NULL"), "1");
  EXPECT_EQ(One("format_bytes(1536)"), "1.50 KiB");
  EXPECT_EQ(One("format_rate(12.3e9)"), "12.3 GB/s");
  EXPECT_EQ(One("short_name('void at::native::f<int>(int, int)')"), "at::native::f<int>");
  EXPECT_EQ(One("length(short_name('void at::native::gemm_kernel<int, float>(int)', 10)) <= 10"), "1");
}

TEST_F(FunctionsTest, PrintfFormatsNumbersAndTexts) {
  EXPECT_EQ(One("printf('%5.1f|%-4d|%04d|%s|%x|%%', 3.14159, 7, 42, 'abc', 255)"), "  3.1|7   |0042|abc|ff|%");
  EXPECT_EQ(One("format('%,d', 1234567)"), "1,234,567");
  EXPECT_EQ(One("printf('%s', NULL)"), "");
  EXPECT_EQ(One("printf(NULL)"), "NULL");
}

TEST_F(FunctionsTest, PrintfRefusesWidthsThatTakeSeconds) {
  for (const char* call : {"printf('%1000000000d', 1)", "printf('%.*c', 1000000000, 'x')", "format('%.99999f', 1.0)"}) {
    asked_.Ask(std::string("SELECT ") + call);
    ASSERT_TRUE(asked_.error()) << call;
    EXPECT_NE(asked_.error()->message.find("width"), std::string::npos) << asked_.error()->message;
  }
}

}  // namespace
}  // namespace lockstep::query
