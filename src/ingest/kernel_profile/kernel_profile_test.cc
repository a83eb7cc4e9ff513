#include <gtest/gtest.h>

#include <string>

#include "ingest/kernel_profile/csv_rows.h"
#include "ingest/kernel_profile/metric_units.h"
#include "ingest/kernel_profile/ncu_csv.h"
#include "ingest/kernel_profile/stats_csv.h"

namespace lockstep::ingest {
namespace {

using model::KernelProfiles;

KernelProfiles ReadNcu(const std::string& text) {
  KernelProfiles profiles;
  EXPECT_TRUE(LooksLikeNcuCsv(text));
  ReadNcuCsv(text, "k.csv", 3, &profiles);
  return profiles;
}

KernelProfiles ReadStats(const std::string& text, const std::string& file = "job_cuda_gpu_kern_sum.csv") {
  KernelProfiles profiles;
  EXPECT_TRUE(LooksLikeStatsSum(text));
  ReadStatsSum(text, file, 0, &profiles);
  return profiles;
}

constexpr const char* kRawHeader =
    "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\",\"Block Size\",\"Grid "
    "Size\",\"Device\",\"CC\",\"gpu__time_duration.sum\",\"sm__throughput.avg.pct_of_peak_sustained_elapsed\","
    "\"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed\"\n";

std::string Raw(const std::string& unit, const std::string& time, const std::string& compute = "70") {
  const std::string units = R"x("","","","","","","","","","","",")x" + unit + "\",\"%\",\"%\"\n";
  const std::string launch =
      R"x("0","7","python","127.0.0.1","void f<int>(a, ""b"")","1","7","(32, 1, 1)","(8, 1, 1)","0","8.6",)x";
  return kRawHeader + units + launch + "\"" + time + "\",\"" + compute + "\",\"12.5\"\n";
}

TEST(CsvRowsTest, QuotedCellsHoldSeparatorsQuotesAndLineBreaks) {
  std::vector<std::vector<std::string>> rows;
  ForEachRow("a,\"b,\"\"c\"\"\nd\"\n\n1, 2 \r\n3", ',', [&](std::vector<std::string>& cells) {
    rows.push_back(cells);
    return true;
  });
  EXPECT_EQ(rows, (std::vector<std::vector<std::string>>{{"a", "b,\"c\"\nd"}, {"1", "2"}, {"3"}}));
}

TEST(CsvRowsTest, NumbersOfEitherStyle) {
  EXPECT_EQ(NumberOf("4,963,609,951.19", {'.'}), 4963609951.19);
  EXPECT_EQ(NumberOf("4.963.609,5", {','}), 4963609.5);
  EXPECT_EQ(NumberOf("-1e3", {'.'}), -1000.0);
  for (const char* none : {"", "n/a", "nan", "-nan", "inf", "12x", "1e999", "--"}) {
    EXPECT_EQ(NumberOf(none, {'.'}), std::nullopt) << none;
  }
  EXPECT_TRUE(HasDecimalComma("61,84"));
  EXPECT_TRUE(HasDecimalComma("1.234,567"));
  EXPECT_TRUE(HasDecimalComma("0,125"));
  for (const char* not_told : {"12,319", "1,234,567.8", "61.84", "7", ",", "1,", "(8, 1, 1)"}) {
    EXPECT_FALSE(HasDecimalComma(not_told)) << not_told;
  }
}

TEST(MetricUnitsTest, PrefixesAndRates) {
  EXPECT_DOUBLE_EQ(FactorOf("usecond"), 1e-6);
  EXPECT_DOUBLE_EQ(FactorOf("ms"), 1e-3);
  EXPECT_DOUBLE_EQ(FactorOf("seconds"), 1);
  EXPECT_DOUBLE_EQ(FactorOf("Gbyte/second"), 1e9);
  EXPECT_DOUBLE_EQ(FactorOf("cycle/nsecond"), 1e9);
  EXPECT_DOUBLE_EQ(FactorOf("cycle/usecond"), 1e6);
  EXPECT_DOUBLE_EQ(FactorOf("byte/cycle"), 1);
  EXPECT_DOUBLE_EQ(FactorOf("%"), 0.01);
  EXPECT_DOUBLE_EQ(FactorOf("Ghz"), 1e9);
  EXPECT_DOUBLE_EQ(FactorOf(""), 1);
  EXPECT_DOUBLE_EQ(FactorOf("furlong"), 1);
}

TEST(NcuCsvTest, UnitsAreThoseOfTheFile) {
  for (const auto& [unit, time] :
       {std::pair("nsecond", "431648"), std::pair("usecond", "431.648"), std::pair("msecond", "0.431648"),
        std::pair("second", "0.000431648"), std::pair("ns", "431,648.00"), std::pair("us", "431,648")}) {
    const KernelProfiles profiles = ReadNcu(Raw(unit, time));
    ASSERT_EQ(profiles.launches.size(), 1U) << unit;
    EXPECT_EQ(profiles.launches[0].duration_ns, std::string(unit) == "us" ? 431'648'000 : 431'648) << unit;
  }
}

TEST(NcuCsvTest, WhatIsPrintedBeforeAndInBetweenIsPassedOver) {
  const std::string text =
      "==PROF== Connected to process 7\nepoch 1, loss 2\n" + Raw("ns", "100") + "epoch 2, loss 1\n";
  const KernelProfiles profiles = ReadNcu(text);
  ASSERT_EQ(profiles.launches.size(), 1U);
  EXPECT_EQ(profiles.launches[0].kernel, "void f<int>(a, \"b\")");
  EXPECT_EQ(profiles.launches[0].rank, 3);
  EXPECT_DOUBLE_EQ(profiles.launches[0].compute_ratio.value(), 0.7);
  EXPECT_DOUBLE_EQ(profiles.launches[0].memory_ratio.value(), 0.125);
  EXPECT_EQ(profiles.launches[0].missing_metrics.size(), 9U);
  ASSERT_EQ(profiles.ledger.entries().size(), 1U);
  EXPECT_EQ(profiles.ledger.entries()[0].code, "ncu_rows_skipped");
}

TEST(NcuCsvTest, ADecimalCommaIsSeenFromTheOtherNumbers) {
  const KernelProfiles profiles = ReadNcu(Raw("us", "1.431,648", "61,84"));
  ASSERT_EQ(profiles.launches.size(), 1U);
  EXPECT_EQ(profiles.launches[0].duration_ns, 1'431'648);
  EXPECT_DOUBLE_EQ(profiles.launches[0].compute_ratio.value(), 0.6184);
}

TEST(NcuCsvTest, NothingMeasuredIsSaidAndNotShownAsZero) {
  const KernelProfiles profiles = ReadNcu(Raw("ns", "0", "0"));
  EXPECT_FALSE(profiles.launches[0].measured_nothing);  // one of them is 12.5 %
  const std::string none = Raw("ns", "0", "nan");
  const KernelProfiles zero = ReadNcu(none.substr(0, none.rfind("12.5")) + "0\"\n");
  EXPECT_TRUE(zero.launches[0].measured_nothing);
  EXPECT_EQ(zero.ledger.entries().at(0).code, "ncu_measured_nothing");
}

TEST(NcuCsvTest, DetailsPageWithRules) {
  const KernelProfiles profiles = ReadNcu(
      "\"ID\",\"Process ID\",\"Kernel Name\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\",\"Rule "
      "Name\",\"Rule Type\",\"Rule Description\",\"Estimated Speedup Type\",\"Estimated Speedup\"\n"
      "\"0\",\"7\",\"f\",\"SOL\",\"Duration\",\"msecond\",\"2.5\",\n"
      "\"0\",\"7\",\"f\",\"SOL\",\"Memory Throughput\",\"%\",\"80\"\n"
      "\"0\",\"7\",\"f\",\"Memory\",\"Memory Throughput\",\"Gbyte/second\",\"500\"\n"
      "\"0\",\"7\",\"f\",\"SOL\",\"\",\"\",\"\",\"SOLBottleneck\",\"OPT\",\"do, this\",\"global\",\"25.5\"\n"
      "\"1\",\"7\",\"f\",\"SOL\",\"Duration\",\"msecond\",\"3\"\n");
  ASSERT_EQ(profiles.launches.size(), 2U);
  EXPECT_EQ(profiles.launches[0].duration_ns, 2'500'000);
  EXPECT_DOUBLE_EQ(profiles.launches[0].memory_ratio.value(), 0.8);
  ASSERT_EQ(profiles.launches[0].rules.size(), 1U);
  EXPECT_EQ(profiles.launches[0].rules[0].text, "do, this");
  EXPECT_DOUBLE_EQ(profiles.launches[0].rules[0].speedup_ratio.value(), 0.255);
  EXPECT_FALSE(profiles.launches[0].rules[0].speedup_is_local);
  EXPECT_EQ(profiles.launches[1].duration_ns, 3'000'000);
}

TEST(StatsSumTest, UnitOfTimeAndKindsAreThoseOfTheHeader) {
  const KernelProfiles kernels = ReadStats(
      "Processing [x.sqlite] with [cuda_gpu_kern_sum.py]...\n"
      "Time (%),Total Time (us),Instances,Avg (us),Med (us),Min (us),Max (us),StdDev (us),Name\n"
      "75.0,1500.5,3,1,1,0.5,1000,1,\"f<int>(a, b)\"\nSKIPPED: nothing\n");
  ASSERT_EQ(kernels.sums.size(), 1U);
  EXPECT_EQ(kernels.sums[0].name, "f<int>(a, b)");
  EXPECT_EQ(kernels.sums[0].report, "job");
  EXPECT_EQ(kernels.sums[0].count, 3U);
  EXPECT_EQ(kernels.sums[0].total_ns, 1'500'500);
  EXPECT_EQ(kernels.sums[0].min_ns, 500);
  EXPECT_EQ(kernels.sums[0].max_ns, 1'000'000);
  EXPECT_EQ(kernels.ledger.entries().at(0).code, "stats_rows_skipped");
  const auto kind = [](const std::string& header) { return ReadStats(header + "\n50,10,2,x\n").sums.at(0).kind; };
  EXPECT_EQ(kind("Time(%),Total Time (ns),Num Calls,Name"), model::SummedKind::kApi);
  EXPECT_EQ(kind("Time (%),Total Time (ns),Count,Operation"), model::SummedKind::kMemory);
  EXPECT_EQ(kind("Time (%),Total Time (ns),Instances,Range"), model::SummedKind::kRange);
  EXPECT_EQ(ReadStats("Time (%)\tTotal Time (ns)\tInstances\tName\n50\t10\t2\ta b\n").sums.at(0).name, "a b");
  EXPECT_FALSE(LooksLikeStatsSum("Time (%),Total Time (ns),Instances,GridXYZ,BlockXYZ,Name\n"));
  EXPECT_FALSE(LooksLikeStatsSum("Total (MB),Count,Operation\n1,2,x\n"));
  EXPECT_FALSE(LooksLikeStatsSum(""));
}

}  // namespace
}  // namespace lockstep::ingest
