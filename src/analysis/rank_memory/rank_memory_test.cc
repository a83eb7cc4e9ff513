#include "analysis/rank_memory/rank_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

namespace lockstep::rank_memory {
namespace {

using model::RankStages;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kSecond = 1'000'000'000;

/// A rank of host "a" whose process takes so many MiB in each second.
RankStages RankThatTakes(int64_t seconds, const std::function<double(int64_t)>& mebibytes,
                         std::string_view counter = model::kResidentMemoryCounter) {
  RankStages rank;
  rank.host = "a";
  for (int64_t i = 0; i < seconds; ++i) {
    rank.memory.Take(counter, 1'700'000'000 * kSecond + i * kSecond, mebibytes(i) * static_cast<double>(kMiB));
  }
  return rank;
}
RankStages RankThatTakes(double mebibytes) {
  return RankThatTakes(20, [=](int64_t) { return mebibytes; });
}

std::vector<Kind> KindsOf(const std::vector<RankStages>& ranks) {
  std::vector<Kind> kinds;
  for (const Finding& finding : Assess(ranks).findings) kinds.push_back(finding.kind);
  return kinds;
}

TEST(RankMemoryTest, WhatWasNotMeasuredIsAbsent) {
  const Memory memory = Assess({RankStages{}, RankThatTakes(400)});
  EXPECT_THAT(memory.findings, IsEmpty());
  ASSERT_THAT(memory.ranks, SizeIs(2));
  for (const auto& use : memory.ranks[0]) EXPECT_EQ(use, std::nullopt) << "of rank 0";
  EXPECT_EQ(memory.ranks[1][0]->peak_bytes, 400 * kMiB);
  EXPECT_FALSE(memory.ranks[1][1].has_value());
  EXPECT_THAT(Assess({}).ranks, IsEmpty());
}

TEST(RankMemoryTest, ARankThatLeaksIsNamedWithItsRate) {
  const Memory memory =
      Assess({RankThatTakes(400), RankThatTakes(3600, [](int64_t second) { return 400 + 0.1 * double(second); })});
  ASSERT_THAT(memory.findings, SizeIs(2));
  EXPECT_EQ(memory.findings[0].kind, Kind::kImbalance);
  EXPECT_EQ(memory.findings[0].rank_idx, 1U);
  const Finding& creep = memory.findings[1];
  EXPECT_EQ(creep.kind, Kind::kCreep);
  EXPECT_EQ(creep.signal, Signal::kResident);
  EXPECT_EQ(creep.rank_idx, 1U);
  EXPECT_NEAR(creep.bytes_per_hour / double(kMiB), 360, 5);
  EXPECT_NEAR(double(creep.compared_bytes) / double(kMiB), 460, 3) << "the first third's median";
}

TEST(RankMemoryTest, WhatFillsUpOrGoesUpAndDownOrIsLittleIsNoCreep) {
  const auto cache = [](int64_t second) { return 400 + 300 * (1 - std::exp(-double(second) / 40)); };
  const auto late_start = [](int64_t second) { return second < 60 ? 300.0 : 900.0; };
  const auto saw = [](int64_t second) { return 400 + 10 * double(second % 30); };
  const auto little = [](int64_t second) { return 400 + 0.05 * double(second); };
  const auto slow = [](int64_t second) { return 100'000 + 2 * double(second); };
  for (const auto& mebibytes : std::vector<std::function<double(int64_t)>>{cache, late_start, saw, little, slow}) {
    EXPECT_THAT(KindsOf({RankThatTakes(600, mebibytes), RankThatTakes(600, mebibytes)}), IsEmpty());
  }
  std::mt19937_64 random(5);
  std::normal_distribution<double> noise(500, 40);
  for (int job = 0; job < 100; ++job) {
    EXPECT_THAT(KindsOf({RankThatTakes(60, [&](int64_t) { return noise(random); })}), IsEmpty());
  }
}

TEST(RankMemoryTest, WhatCannotBeGrowsNoFasterThanANumberHolds) {
  RankStages rank;
  for (int64_t i = 0; i < 12; ++i) {
    rank.memory.Take(model::kResidentMemoryCounter, i * kSecond / 9, 8e16 * static_cast<double>(i));
  }
  EXPECT_EQ(Assess({rank}).findings.at(0).bytes_per_hour, 1e18);
}

TEST(RankMemoryTest, OneRankThatNeedsMoreIsAnImbalance) {
  EXPECT_THAT(KindsOf({RankThatTakes(1000), RankThatTakes(1000), RankThatTakes(1300)}), ElementsAre(Kind::kImbalance));
  EXPECT_THAT(KindsOf({RankThatTakes(1000), RankThatTakes(1000), RankThatTakes(1150)}), IsEmpty()) << "15 %";
  EXPECT_THAT(KindsOf({RankThatTakes(100), RankThatTakes(100), RankThatTakes(200)}), IsEmpty()) << "100 MiB";
}

TEST(RankMemoryTest, ADeviceOrAHostThatIsNearlyFullIsUnderPressure) {
  RankStages device = RankThatTakes(
      20, [](int64_t) { return 76'000; }, model::kReservedMemoryCounter);
  EXPECT_THAT(KindsOf({device}), IsEmpty()) << "of how much is not known";
  device.memory.device_bytes = 80'000 * kMiB;
  EXPECT_THAT(KindsOf({device}), ElementsAre(Kind::kPressure));
  device.memory.device_bytes = 141'000 * kMiB;
  EXPECT_THAT(KindsOf({device}), IsEmpty());
  device.memory.Take(model::kAllocationRetriesCounter, 0, 3);
  EXPECT_EQ(Assess({device}).findings.at(0).retry_count, 3);

  std::vector<RankStages> ranks(4, RankThatTakes(1000));
  for (RankStages& rank : ranks) rank.memory.host_bytes = 4'200 * kMiB;
  const Memory memory = Assess(ranks);
  ASSERT_THAT(memory.findings, SizeIs(1));
  EXPECT_EQ(memory.findings[0].host, "a");
  EXPECT_EQ(memory.findings[0].rank_count, 4);
  EXPECT_EQ(memory.findings[0].rank_idx, std::nullopt);
  ranks[3].host = "b";
  EXPECT_THAT(KindsOf(ranks), IsEmpty());
}

TEST(MemorySeriesTest, KeepsTheMostOfEachTimeInABoundedNumberOfSamples) {
  model::MemorySeries series;
  int64_t most = 0;
  std::mt19937_64 random(1);
  for (int64_t i = 0; i < 200'000; ++i) {
    const auto bytes = static_cast<int64_t>(random() % 1'000'000'000);
    most = std::max(most, bytes);
    series.Add(i * kSecond, bytes);
  }
  EXPECT_LE(series.samples().size(), model::MemorySeries::kMost);
  EXPECT_GE(series.samples().size(), model::MemorySeries::kMost / 2);
  int64_t kept = 0;
  int64_t before_ns = -1;
  for (const model::MemorySample& sample : series.samples()) {
    kept = std::max(kept, sample.bytes);
    EXPECT_GT(sample.time_ns, before_ns);
    before_ns = sample.time_ns;
  }
  EXPECT_EQ(kept, most);
  series.Add(0, 5);
  series.Add(INT64_MAX, 7);
  EXPECT_LE(series.samples().size(), model::MemorySeries::kMost);
}

TEST(MemorySeriesTest, TimesOfAWrongClockCanBeSubtracted) {
  model::MemorySeries series;
  for (const int64_t time_ns : {INT64_MIN, int64_t{-1}, INT64_MAX}) series.Add(time_ns, 1);
  for (const model::MemorySample& sample : series.samples()) EXPECT_GE(sample.time_ns, 0);
  EXPECT_EQ(series.samples().back().time_ns, INT64_MAX);
}

TEST(RankMemoryCountersTest, ValuesThatCannotBeArePassedOver) {
  model::RankMemory memory;
  for (const double value : {-1.0, 1e30, std::numeric_limits<double>::quiet_NaN()}) {
    memory.Take(model::kResidentMemoryCounter, 0, value);
    memory.Take(model::kHostMemoryCounter, 0, value);
  }
  memory.Take("loss", 0, 1);
  EXPECT_THAT(memory.resident.samples(), IsEmpty());
  EXPECT_EQ(memory.host_bytes, std::nullopt);
}

}  // namespace
}  // namespace lockstep::rank_memory
