#include "analysis/alignment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "analysis/testing/collective_job.h"
#include "base/nanoseconds.h"

namespace lockstep::analysis {
namespace {

using testing::AddCall;
using testing::Job;
using testing::RunBuilder;

constexpr int64_t kStart = 1'700'000'000'000'000'000;

/// What a rank's clock reads more than true time.
struct PlantedClock {
  int64_t offset_ns = 0;
  double drift_ppm = 0;
  int64_t At(int64_t true_ns) const {
    return true_ns + offset_ns + std::llround(drift_ppm * 1e-6 * static_cast<double>(true_ns - kStart));
  }
};

/// Collectives of a group spread over a span; members arrive up to 2 ms apart and leave together, but for the noise.
template <typename Noise>
void AddGroup(RunBuilder& job, const std::vector<PlantedClock>& clocks, const std::string& group,
              const std::vector<int32_t>& ranks, int count, int64_t span_ns, std::mt19937& random, Noise noise) {
  std::string members = "[";
  for (const int32_t rank : ranks) members += (rank == ranks.front() ? "" : ", ") + std::to_string(rank);
  members += "]";
  for (int i = 0; i < count; ++i) {
    const int64_t end_ns = kStart + 5'000'000 + span_ns / count * i;
    for (const int32_t rank : ranks) {
      const int64_t arrival_ns = end_ns - 30'000 - static_cast<int64_t>(random() % 2'000'000);
      const PlantedClock& clock = clocks[static_cast<size_t>(rank)];
      AddCall(job, {rank, clock.At(arrival_ns), clock.At(end_ns + static_cast<int64_t>(noise(rank))), "allreduce", 100,
                    group, members, i});
    }
  }
}

void ExpectClock(const model::RankTrace& rank, const PlantedClock& planted, const PlantedClock& reference,
                 int64_t span_ns) {
  for (const int64_t true_ns : {kStart, kStart + span_ns}) {
    const int64_t wanted_ns = planted.At(true_ns) - reference.At(true_ns);
    const int64_t error_ns = rank.clock.OffsetAt(planted.At(true_ns)) - wanted_ns;
    EXPECT_LE(std::abs(error_ns), 10'000) << "rank " << rank.rank.value;
    ASSERT_TRUE(rank.clock.uncertainty_ns.has_value());
    EXPECT_LE(std::abs(error_ns), *rank.clock.uncertainty_ns) << "rank " << rank.rank.value;
  }
}

RunBuilder& OnHosts(RunBuilder& job, int32_t ranks) {
  for (int32_t rank = 0; rank < ranks; ++rank) job.Rank(rank).Host("host" + std::to_string(rank));
  return job;
}

TEST(AlignmentTest, OffsetsAreFoundWithinTenMicroseconds) {
  std::mt19937 random(1);
  std::exponential_distribution<double> late(1.0 / 3'000);
  const std::vector<PlantedClock> clocks = {{0, 0}, {3'000'000, 0}, {-250'000, 0}, {2 * kSecondNs, 0}};
  RunBuilder builder;
  OnHosts(builder, 4);
  AddGroup(builder, clocks, "0", {0, 1, 2, 3}, 60, kSecondNs, random, [&](int32_t) { return late(random); });
  Job job(builder.Build());
  job.Time();
  for (size_t r = 0; r < 4; ++r) ExpectClock(job.run.ranks[r], clocks[r], clocks[0], kSecondNs);
  EXPECT_EQ(job.run.ranks[0].clock.basis, model::ClockMap::Basis::kReference);
  EXPECT_EQ(job.run.ranks[1].clock.basis, model::ClockMap::Basis::kCollectives);
  EXPECT_EQ(job.run.ranks[1].clock.sample_count, 60u);
}

TEST(AlignmentTest, LatenessOfOneRankAloneDoesNotMoveItsClock) {
  std::mt19937 random(2);
  std::exponential_distribution<double> late(1.0 / 20'000);
  const std::vector<PlantedClock> clocks = {{0, 0}, {700'000, 0}};
  RunBuilder builder;
  OnHosts(builder, 2);
  AddGroup(builder, clocks, "0", {0, 1}, 300, kSecondNs, random,
           [&](int32_t rank) { return rank == 1 ? late(random) : 0; });
  Job job(builder.Build());
  job.Time();
  ExpectClock(job.run.ranks[1], clocks[1], clocks[0], kSecondNs);
}

TEST(AlignmentTest, DriftOverALongWindowIsFollowed) {
  std::mt19937 random(3);
  std::exponential_distribution<double> late(1.0 / 2'000);
  const std::vector<PlantedClock> clocks = {{0, 0}, {1'000'000, 20}, {-40'000, -50}, {0, 1}};
  RunBuilder builder;
  OnHosts(builder, 4);
  AddGroup(builder, clocks, "0", {0, 1, 2, 3}, 400, 12 * kSecondNs, random, [&](int32_t) { return late(random); });
  Job job(builder.Build());
  job.Time();
  for (size_t r = 0; r < 4; ++r) ExpectClock(job.run.ranks[r], clocks[r], clocks[0], 12 * kSecondNs);
  EXPECT_NEAR(job.run.ranks[1].clock.drift_ppm, 20, 0.5);
}

TEST(AlignmentTest, GroupsThatOverlapReachRanksThatShareNothingWithTheFirst) {
  std::mt19937 random(4);
  std::exponential_distribution<double> late(1.0 / 1'500);
  const std::vector<PlantedClock> clocks = {{0, 0},         {400'000, 0}, {-900'000, 0},
                                            {5'000'000, 0}, {77'000, 0},  {-1'000'000, 0}};
  RunBuilder builder;
  OnHosts(builder, 6);
  const auto noise = [&](int32_t) { return late(random); };
  AddGroup(builder, clocks, "a", {0, 1}, 50, kSecondNs, random, noise);
  AddGroup(builder, clocks, "b", {1, 2, 3}, 50, kSecondNs, random, noise);
  AddGroup(builder, clocks, "c", {3, 4}, 50, kSecondNs, random, noise);
  AddGroup(builder, clocks, "d", {4, 5}, 50, kSecondNs, random, noise);
  Job job(builder.Build());
  job.Time();
  for (size_t r = 0; r < 6; ++r) ExpectClock(job.run.ranks[r], clocks[r], clocks[0], kSecondNs);
}

TEST(AlignmentTest, OutliersMoveNothing) {
  std::mt19937 random(5);
  const std::vector<PlantedClock> clocks = {{0, 0}, {123'456, 0}};
  RunBuilder builder;
  OnHosts(builder, 2);
  AddGroup(builder, clocks, "0", {0, 1}, 80, kSecondNs, random, [&](int32_t rank) {
    return rank == 1 && random() % 6 == 0 ? 3'000'000 : static_cast<int64_t>(random() % 2'000);
  });
  Job job(builder.Build());
  job.Time();
  ExpectClock(job.run.ranks[1], clocks[1], clocks[0], kSecondNs);
}

TEST(AlignmentTest, OneHostsClockIsNotCorrectedByNoise) {
  std::mt19937 random(6);
  std::exponential_distribution<double> late(1.0 / 5'000'000);  // completion on a shared CPU: milliseconds
  const std::vector<PlantedClock> clocks(4);
  RunBuilder builder;
  AddGroup(builder, clocks, "0", {0, 1, 2, 3}, 12, kSecondNs, random, [&](int32_t) { return late(random); });
  Job job(builder.Build());
  job.Time();
  for (const model::RankTrace& rank : job.run.ranks) EXPECT_EQ(rank.clock.offset_ns, 0);
  EXPECT_EQ(job.run.ranks[3].clock.basis, model::ClockMap::Basis::kWallClock);
}

TEST(AlignmentTest, OneHostsClockDoesNotDriftByItsLoad) {
  // The ends come later by and by, as on a host that gets busier: a slope beyond three times its error.
  std::mt19937 random(8);
  std::exponential_distribution<double> late(1.0 / 300'000);
  constexpr int kCount = 400;
  for (const bool one_host : {true, false}) {
    RunBuilder builder;
    for (const int32_t rank : {0, 1}) builder.Rank(rank).Host(one_host ? "a" : "host" + std::to_string(rank));
    int told = 0;
    const auto busier = [&](int32_t rank) {
      return rank == 1 ? late(random) + 1'000.0 * (told++ % kCount) : late(random);
    };
    AddGroup(builder, std::vector<PlantedClock>(2), "0", {0, 1}, kCount, 10 * kSecondNs, random, busier);
    Job job(builder.Build());
    job.Time();
    EXPECT_EQ(job.run.ranks[1].clock.drift_ppm == 0, one_host);
  }
}

TEST(AlignmentTest, RanksOfAnotherHostShareOneClock) {
  std::mt19937 random(7);
  std::exponential_distribution<double> late(1.0 / 2'000);
  const std::vector<PlantedClock> clocks = {{0, 0}, {0, 0}, {600'000, 0}, {600'000, 0}};
  RunBuilder builder;
  for (const int32_t rank : {0, 1, 2, 3}) builder.Rank(rank).Host(rank < 2 ? "a" : "b");
  AddGroup(builder, clocks, "0", {0, 1, 2, 3}, 40, kSecondNs, random, [&](int32_t) { return late(random); });
  Job job(builder.Build());
  job.Time();
  EXPECT_EQ(job.run.ranks[1].clock.offset_ns, 0);
  EXPECT_EQ(job.run.ranks[2].clock.offset_ns, job.run.ranks[3].clock.offset_ns);
  ExpectClock(job.run.ranks[2], clocks[2], clocks[0], kSecondNs);
}

TEST(AlignmentTest, ARankThatSharesNothingKeepsItsWallClockAndIsNamed) {
  RunBuilder builder;
  OnHosts(builder, 3);
  for (const int32_t rank : {0, 1}) AddCall(builder, {rank, 1000, 2000, "allreduce", 10, "0", "[0, 1]", 1});
  builder.Rank(2).Kernel(7, "gemm", 1000, 10);
  Job job(builder.Build());
  job.Time();
  EXPECT_FALSE(job.run.ranks[2].clock.uncertainty_ns.has_value());
  EXPECT_EQ(job.run.ranks[2].clock.basis, model::ClockMap::Basis::kWallClock);
  ASSERT_EQ(job.run.ledger.entries().size(), 1u);
  EXPECT_EQ(job.run.ledger.entries()[0].code, "clock_not_aligned");
  EXPECT_EQ(job.run.ledger.entries()[0].rank, 2);
}

TEST(AlignmentTest, ACollectiveThatCannotBeOneIsNotedAndMakesNoWait) {
  RunBuilder builder;
  for (int64_t i = 0; i < 20; ++i) {
    const int64_t start_ns = kStart + i * 10'000'000;
    for (const int32_t rank : {0, 1}) {
      const int64_t shift_ns = rank == 1 && i == 9 ? 3'000'000 : 0;
      AddCall(builder, {rank, start_ns + shift_ns, start_ns + shift_ns + 100'000, "allreduce", 10, "0", "[0, 1]", i});
    }
  }
  Job job(builder.Build());
  const Collectives collectives = job.Time();
  EXPECT_FALSE(collectives.instances[9].members[0].wait_ns.has_value());
  EXPECT_TRUE(collectives.instances[8].members[0].wait_ns.has_value());
  ASSERT_EQ(job.run.ledger.entries().size(), 1u);
  EXPECT_EQ(job.run.ledger.entries()[0].code, "collective_causality");
}

TEST(AlignmentTest, WindowsAreAlignedOneByOne) {
  RunBuilder builder;
  for (const int32_t window : {0, 1}) {
    for (const int32_t rank : {0, 1}) {
      const int64_t offset_ns = rank * (1'000'000 + window * 500'000);
      for (int64_t i = 0; i < 10; ++i) {
        const int64_t start_ns = kStart + window * 100 * kSecondNs + i * 1'000'000 + offset_ns;
        builder.Rank(rank, window).Host("host" + std::to_string(rank));
        builder.Rank(rank, window).WorldSize(2).Kernel(20, testing::KernelName("allreduce"), start_ns, 100'000);
      }
    }
  }
  Job job(builder.Build());
  job.Time();
  EXPECT_EQ(job.run.ranks[1].clock.offset_ns, 1'000'000);
  EXPECT_EQ(job.run.ranks[3].clock.offset_ns, 1'500'000);
}

}  // namespace
}  // namespace lockstep::analysis
