#include "present/report/format.h"

#include <gtest/gtest.h>

#include <limits>

#include "present/report/kernel_name.h"
#include "present/report/text_page.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

TEST(FormatTest, DurationsHaveThreeDigitsAndCarryIntoTheNextUnit) {
  EXPECT_EQ(FormatDuration(int64_t{0}), "0");
  EXPECT_EQ(FormatDuration(int64_t{999}), "999 ns");
  EXPECT_EQ(FormatDuration(int64_t{1000}), "1.00 us");
  EXPECT_EQ(FormatDuration(int64_t{999'600}), "1.00 ms");
  EXPECT_EQ(FormatDuration(int64_t{45'600'000}), "45.6 ms");
  EXPECT_EQ(FormatDuration(int64_t{-1'234'000}), "-1.23 ms");
  EXPECT_EQ(FormatDuration(int64_t{12'000'000'000}), "12.0 s");
  EXPECT_EQ(FormatDuration(int64_t{1'278'000'000'000}), "21.3 min");
  EXPECT_EQ(FormatDuration(std::optional<int64_t>()), "-");
}

TEST(FormatTest, ExtremesNeitherOverflowNorGrowWide) {
  EXPECT_LE(FormatDuration(std::numeric_limits<int64_t>::min()).size(), 12u);
  EXPECT_LE(FormatBytes(std::numeric_limits<int64_t>::max()).size(), 10u);
  EXPECT_EQ(FormatPercent(std::numeric_limits<double>::quiet_NaN()), "-");
}

TEST(FormatTest, BytesArePowersOf1024AndRatesOf1000) {
  EXPECT_EQ(FormatBytes(int64_t{67'108'864}), "64.0 MiB");
  EXPECT_EQ(FormatRate(20.1326592e9), "20.1 GB/s");
}

TEST(FormatTest, SmallSharesAreNotZero) {
  EXPECT_EQ(FormatPercent(0.0), "0 %");
  EXPECT_EQ(FormatPercent(0.0004), "<0.1 %");
  EXPECT_EQ(FormatPercent(0.042), "4.2 %");
  EXPECT_EQ(FormatPercent(0.42), "42 %");
}

TEST(FormatTest, CountsAreGrouped) {
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1'234'567), "1,234,567");
}

TEST(RankListTest, NeighboursAreJoinedAndTheRestIsCounted) {
  EXPECT_EQ(RankList({0, 1, 2, 3, 7}, 3), "0-3, 7");
  EXPECT_EQ(RankList({5, 6}, 3), "5, 6");
  EXPECT_EQ(RankList({1, 3, 5, 7, 9}, 2), "1, 3 and 3 more");
}

TEST(KernelNameTest, SignatureGoesAndCopiesKeepTheirBrackets) {
  EXPECT_EQ(StripSignature("void at::native::(anonymous namespace)::add<int>(int, float)"), "at::native::add<int>");
  EXPECT_EQ(StripSignature("ncclKernel_AllReduce_RING_LL_Sum_half(ncclWorkElem)"),
            "ncclKernel_AllReduce_RING_LL_Sum_half");
  EXPECT_EQ(StripSignature("Memcpy HtoD (Pageable -> Device)"), "Memcpy HtoD (Pageable -> Device)");
  EXPECT_EQ(StripSignature("unbalanced)))"), "unbalanced)))");
}

TEST(KernelNameTest, TemplateHeadSurvivesShortening) {
  const std::string name = "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float> >(int)";
  EXPECT_EQ(ShortenName(name, 60, true), "vectorized_elementwise_kernel<4, AddFunctor<float>>");
  EXPECT_EQ(ShortenName(name, 40, true), "vectorized_elementwise_kernel<4, AddFun…");
  EXPECT_LE(DisplayWidth(ShortenName(name, 10, true)), 10);
  EXPECT_LE(DisplayWidth(ShortenName(name, 10, false)), 10);
}

TEST(Utf8Test, BadSequencesBecomeOneReplacementEach) {
  EXPECT_EQ(ValidUtf8("a\xFF"
                      "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(ValidUtf8("\xE2\x82"), "\xEF\xBF\xBD");                              // cut
  EXPECT_EQ(ValidUtf8("\xC0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD");                  // overlong
  EXPECT_EQ(ValidUtf8("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // surrogate
  EXPECT_EQ(ValidUtf8("größe ▶ 漢"), "größe ▶ 漢");
}

TEST(Utf8Test, ControlsAndDirectionMarksDoNotReachTheTerminal) {
  EXPECT_EQ(Printable("a\x1b[31mb\n\x7f"), "a?[31mb??");
  EXPECT_EQ(Printable("x\xE2\x80\xAEy"), "x?y");
}

TEST(Utf8Test, WidthCountsColumns) {
  EXPECT_EQ(DisplayWidth("größe"), 5);
  EXPECT_EQ(DisplayWidth("漢字"), 4);
  EXPECT_EQ(DisplayWidth("\x1b[1mab\x1b[0m"), 2);
  EXPECT_EQ(Truncate("漢字漢字", 5, "…"), "漢字…");
}

}  // namespace
}  // namespace lockstep::report
