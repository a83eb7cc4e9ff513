#include "analysis/memory_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "analysis/testing/trace_builder.h"

namespace lockstep::analysis {
namespace {

using ::testing::ElementsAre;

TEST(MemorySeriesTest, EachBucketKeepsItsLeastAndItsMost) {
  testing::RunBuilder builder;
  for (const auto& [time_ns, bytes] : {std::pair{0, 10}, {1, 50}, {2, 20}, {99, 30}, {100, 5}}) {
    builder.Rank(0).Allocation(0, 1000 + time_ns, 1, bytes);
  }
  const model::Run run = builder.Build();
  const std::vector<MemorySeries> series = ComputeMemorySeries(run, 0, 2);
  ASSERT_EQ(series.size(), 1u);
  EXPECT_THAT(series[0].bytes.time_ns, ElementsAre(1000, 1099));
  EXPECT_THAT(series[0].bytes.min, ElementsAre(10, 5));
  EXPECT_THAT(series[0].bytes.max, ElementsAre(50, 30));
}

TEST(MemorySeriesTest, NoPeakIsLost) {
  std::mt19937_64 random(3);
  testing::RunBuilder builder;
  int64_t most = 0;
  for (int64_t i = 0; i < 5000; ++i) {
    const auto bytes = static_cast<int64_t>(random() % 1'000'000);
    most = std::max(most, bytes);
    builder.Rank(0).Allocation(0, i * 17, 1, bytes);
  }
  const model::Run run = builder.Build();
  const std::vector<MemorySeries> series = ComputeMemorySeries(run, 0, 64);
  ASSERT_EQ(series.size(), 1u);
  EXPECT_LE(series[0].bytes.time_ns.size(), 64u);
  EXPECT_EQ(*std::max_element(series[0].bytes.max.begin(), series[0].bytes.max.end()), most);
  EXPECT_TRUE(std::is_sorted(series[0].bytes.time_ns.begin(), series[0].bytes.time_ns.end()));
}

TEST(MemorySeriesTest, DevicesAreApartAndUnknownCountersAreAbsent) {
  testing::RunBuilder builder;
  builder.Rank(0).Allocation(1, 0, 1, 7).Allocation(-1, 1, 1, 9).Allocation(2, 2, 1, -1);
  const model::Run run = builder.Build();
  const std::vector<MemorySeries> series = ComputeMemorySeries(run, 0, 10);
  ASSERT_EQ(series.size(), 2u);
  EXPECT_EQ(series[0].device, -1);
  EXPECT_EQ(series[1].device, 1);
}

TEST(MemorySeriesTest, WithoutRowsThereIsNoSeries) {
  testing::RunBuilder builder;
  builder.Rank(0).Op(1, "aten::mm", 0, 1);
  const model::Run run = builder.Build();
  EXPECT_TRUE(ComputeMemorySeries(run, 0, 10).empty());
}

}  // namespace
}  // namespace lockstep::analysis
