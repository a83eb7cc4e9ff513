#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>

#include "analysis/comparison/compare.h"
#include "planted_run.h"

namespace lockstep::comparison {
namespace {

using testing::ProfileOf;
using testing::SmallJob;

const NameDelta* Largest(const Comparison& comparison, Change change, EventClass kind = EventClass::kKernel) {
  for (const NameDelta& row : comparison.names) {
    if (row.kind == kind && row.change == change) return &row;
  }
  return nullptr;
}

/// Does the interval of `delta` hold `truth`, give or take `slack` of it?
void ExpectHolds(const Delta& delta, double truth, double slack) {
  ASSERT_TRUE(delta.shift && delta.shift->low);
  EXPECT_LE(*delta.shift->low, truth + slack * std::abs(truth));
  EXPECT_GE(*delta.shift->high, truth - slack * std::abs(truth));
}

// 200 pairs of runs that differ in nothing but the seed of the noise: 3 % on every kernel, which is more than enough
// for single kernels to differ by the minimum effect.
TEST(PlantedComparisonTest, SeedNoiseIsNoDifferenceIn200Trials) {
  for (uint64_t trial = 0; trial < 200; ++trial) {
    const Comparison comparison =
        Compare(ProfileOf(SmallJob(1000 + 2 * trial)), ProfileOf(SmallJob(1001 + 2 * trial)), {});
    EXPECT_EQ(comparison.verdict.change, Change::kNone) << trial << ": " << comparison.verdict.sentence;
    for (const NameDelta& row : comparison.names) {
      EXPECT_TRUE(row.change == Change::kNone || row.change == Change::kUnknown)
          << trial << ": " << ChangeName(row.change) << " " << row.name_a << row.name_b;
    }
    for (const CollectiveDelta& row : comparison.collectives) {
      EXPECT_TRUE(row.change == Change::kNone || row.change == Change::kUnknown) << trial << ": " << row.name;
    }
    for (const RankDelta& row : comparison.ranks) {
      EXPECT_TRUE(row.own.change == Change::kNone || row.own.change == Change::kUnknown) << trial << ": " << row.rank;
    }
  }
}

// The same at noise of a third of every kernel: the step itself varies by more than the minimum effect.
TEST(PlantedComparisonTest, LoudSeedNoiseIsHardlyEverADifference) {
  int alarms = 0;
  for (uint64_t trial = 0; trial < 40; ++trial) {
    tracegen::TraceSpec a = SmallJob(5000 + 2 * trial);
    tracegen::TraceSpec b = SmallJob(5001 + 2 * trial);
    a.kernel_spread = b.kernel_spread = 0.5;
    const Comparison comparison = Compare(ProfileOf(a), ProfileOf(b), {});
    alarms += comparison.verdict.change == Change::kFaster || comparison.verdict.change == Change::kSlower ? 1 : 0;
  }
  EXPECT_LE(alarms, 2);
}

TEST(PlantedComparisonTest, SlowerKernelsAreFoundWithTheirSize) {
  tracegen::TraceSpec slow = SmallJob(3);
  slow.kernel_scale = 1.1;
  const Comparison comparison = Compare(ProfileOf(SmallJob(2)), ProfileOf(slow), {});
  EXPECT_EQ(comparison.verdict.change, Change::kSlower);
  ASSERT_FALSE(comparison.verdict.reasons.empty());
  EXPECT_THAT(comparison.verdict.reasons.front().text, ::testing::HasSubstr("compute grew"));
  const Delta& compute = comparison.parts[static_cast<size_t>(Part::kCompute)];
  ExpectHolds(compute, 0.1 * compute.a, 0.02);
  const NameDelta* kernel = Largest(comparison, Change::kSlower);
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->calls_a, kernel->calls_b);
  ExpectHolds(kernel->call, 0.1 * kernel->call.a, 0.02);
  EXPECT_EQ(Largest(comparison, Change::kFaster), nullptr);
}

TEST(PlantedComparisonTest, TheOtherWayRoundItIsFaster) {
  tracegen::TraceSpec slow = SmallJob(3);
  slow.kernel_scale = 1.1;
  const Comparison comparison = Compare(ProfileOf(slow), ProfileOf(SmallJob(2)), {});
  EXPECT_EQ(comparison.verdict.change, Change::kFaster);
  EXPECT_THAT(comparison.verdict.sentence, ::testing::StartsWith("B is "));
  EXPECT_THAT(comparison.verdict.sentence, ::testing::HasSubstr("compute fell"));
}

TEST(PlantedComparisonTest, SlowerTransfersAreFoundWithTheirSize) {
  tracegen::TraceSpec a = SmallJob(7);
  a.overlap_ratio = 0;
  tracegen::TraceSpec b = SmallJob(8);
  b.overlap_ratio = 0;
  b.transfer_ns = 700'000;  // 300 us more for each of two buckets
  const Comparison comparison = Compare(ProfileOf(a), ProfileOf(b), {});
  EXPECT_EQ(comparison.verdict.change, Change::kSlower);
  EXPECT_THAT(comparison.verdict.sentence, ::testing::HasSubstr("exposed communication grew"));
  ExpectHolds(comparison.step, 600'000, 0.02);
  double transfers = 0;
  for (const CollectiveDelta& row : comparison.collectives) {
    EXPECT_EQ(row.change, Change::kSlower);
    transfers += row.transfer.shift->estimate;
  }
  EXPECT_NEAR(transfers, 600'000, 12'000);
}

TEST(PlantedComparisonTest, ASlowRankIsNamed) {
  tracegen::TraceSpec a = SmallJob(11);
  tracegen::TraceSpec b = SmallJob(12);
  a.rank_count = b.rank_count = 4;
  b.stragglers.push_back({.rank = 2, .delay_ns = 1'500'000, .by = tracegen::SlowBy::kKernel});
  const Comparison comparison = Compare(ProfileOf(a), ProfileOf(b), {});
  EXPECT_EQ(comparison.verdict.change, Change::kSlower);
  EXPECT_THAT(comparison.verdict.sentence, ::testing::HasSubstr("because rank 2's own time grew"));
  ASSERT_FALSE(comparison.ranks.empty());
  EXPECT_EQ(comparison.ranks.front().rank, 2);
  ExpectHolds(comparison.ranks.front().own, 1'500'000, 0.02);
  const bool appeared = std::any_of(
      comparison.findings.begin(), comparison.findings.end(),
      [](const FindingDelta& row) { return row.id == "straggler" && row.state == FindingDelta::State::kAppeared; });
  EXPECT_TRUE(appeared);
}

TEST(PlantedComparisonTest, ThreeStepsCannotTell) {
  tracegen::TraceSpec a = SmallJob(21);
  tracegen::TraceSpec b = SmallJob(22);
  a.step_count = b.step_count = 3;
  b.kernel_scale = 2;
  const Comparison comparison = Compare(ProfileOf(a), ProfileOf(b), {});
  EXPECT_EQ(comparison.verdict.change, Change::kUnknown);
  EXPECT_THAT(comparison.verdict.sentence, ::testing::StartsWith("cannot tell: 2 steps each"));
}

TEST(PlantedComparisonTest, LengthsOfRunsCancel) {
  tracegen::TraceSpec b = SmallJob(32);
  b.step_count = 30;
  const Comparison comparison = Compare(ProfileOf(SmallJob(31)), ProfileOf(b), {});
  EXPECT_EQ(comparison.verdict.change, Change::kNone);
  for (const NameDelta& row : comparison.names) EXPECT_NEAR(row.calls_a, row.calls_b, 1e-9) << row.name_a;
}

TEST(PlantedComparisonTest, MoreCallsAreCounted) {
  tracegen::TraceSpec b = SmallJob(42);
  b.layer_count = 3;
  const Comparison comparison = Compare(ProfileOf(SmallJob(41)), ProfileOf(b), {});
  const auto more = std::count_if(comparison.names.begin(), comparison.names.end(),
                                  [](const NameDelta& row) { return row.calls_b > row.calls_a && row.calls_a > 0; });
  EXPECT_GT(more, 5);
}

}  // namespace
}  // namespace lockstep::comparison
