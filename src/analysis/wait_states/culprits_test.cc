#include "analysis/wait_states/culprits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/nanoseconds.h"

namespace lockstep::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A table of waits, and the causes that go with it.
struct Waits {
  Waits(size_t rank_count, size_t round_count) {
    table.windows.assign(rank_count, 0);
    table.round_count = round_count;
    table.floor_ns = kMillisecondNs / 10;
  }

  void Add(size_t rank_index, RootCause cause, const std::vector<double>& rounds_ms) {
    std::map<size_t, double>& rounds = table.wait_ns[{rank_index, cause}];
    for (size_t s = 0; s < rounds_ms.size(); ++s) {
      if (rounds_ms[s] > 0) rounds[s] += rounds_ms[s] * kMillisecondNs;
    }
  }

  std::vector<WaitCulprit> Find(double unexplained_ms = 0) const {
    double wait_ns = unexplained_ms * kMillisecondNs;
    std::vector<RootCauseRow> causes;
    for (const auto& [key, rounds] : table.wait_ns) {
      RootCauseRow row;
      row.rank_index = key.first;
      row.rank_indices = {key.first};
      row.cause = key.second;
      for (const auto& [round, of_round] : rounds) row.direct_wait_ns += std::llround(of_round);
      wait_ns += static_cast<double>(row.direct_wait_ns);
      causes.push_back(std::move(row));
    }
    std::sort(causes.begin(), causes.end(),
              [](const RootCauseRow& a, const RootCauseRow& b) { return a.direct_wait_ns > b.direct_wait_ns; });
    return FindCulprits(table, causes, std::llround(wait_ns));
  }

  std::vector<size_t> Named(double unexplained_ms = 0) const {
    std::vector<size_t> named;
    for (const WaitCulprit& culprit : Find(unexplained_ms)) named.push_back(culprit.rank_index.value_or(SIZE_MAX));
    return named;
  }

  WaitTable table;
};

/// Ranks that are alike: each adds up kernels whose durations vary by a log-normal factor; who comes late begins the
/// others' waiting, together with those that come after it.
Waits AlikeRanks(size_t rank_count, size_t round_count, double kernel_sigma, std::mt19937_64& random) {
  constexpr int kKernels = 20;
  std::normal_distribution<double> normal;
  Waits waits(rank_count, round_count);
  waits.table.floor_ns = 0;
  for (size_t s = 0; s < round_count; ++s) {
    std::vector<std::pair<double, size_t>> arrivals;
    for (size_t r = 0; r < rank_count; ++r) {
      double sum = 0;
      for (int k = 0; k < kKernels; ++k) sum += std::exp(kernel_sigma * normal(random)) / kKernels;
      arrivals.emplace_back(sum, r);
    }
    std::sort(arrivals.begin(), arrivals.end());
    const size_t first_late = rank_count / 2;
    for (size_t i = 0; i + 1 < rank_count; ++i) {
      const double wait_ms = (arrivals[i + 1].first - arrivals[i].first) * static_cast<double>(i + 1);
      const size_t first = std::max(i + 1, first_late);
      std::vector<double> rounds(round_count, 0);
      rounds[s] = wait_ms / static_cast<double>(rank_count - first);
      for (size_t k = first; k < rank_count; ++k) waits.Add(arrivals[k].second, RootCause::kKernel, rounds);
    }
  }
  return waits;
}

class AlikeRanksTest : public ::testing::TestWithParam<std::tuple<size_t, size_t, double>> {};

TEST_P(AlikeRanksTest, AtMostOneJobInAHundredNamesAnybody) {
  const auto [rank_count, round_count, kernel_sigma] = GetParam();
  std::mt19937_64 random(23);
  const int job_count = 12'000 / static_cast<int>(rank_count);
  int naming = 0;
  for (int job = 0; job < job_count; ++job) {
    naming += AlikeRanks(rank_count, round_count, kernel_sigma, random).Named().empty() ? 0 : 1;
  }
  EXPECT_LE(naming, job_count / 100);
}

INSTANTIATE_TEST_SUITE_P(Jobs, AlikeRanksTest,
                         ::testing::Combine(::testing::Values(2, 4, 8, 24), ::testing::Values(2, 3, 6, 12),
                                            ::testing::Values(0.2, 0.7)));

TEST(CulpritsTest, WhoIsBehindMostOfEveryRoundIsNamed) {
  Waits waits(4, 3);
  waits.Add(2, RootCause::kKernel, {30, 31, 29});
  waits.Add(0, RootCause::kKernel, {2, 0, 1});
  waits.Add(3, RootCause::kKernel, {0, 3, 1});
  const std::vector<WaitCulprit> culprits = waits.Find();
  ASSERT_EQ(culprits.size(), 1u);
  EXPECT_EQ(culprits[0].rank_index, 2u);
  EXPECT_NEAR(culprits[0].wait_ratio, 90.0 / 97, 1e-6);
  EXPECT_LE(culprits[0].chance, 0.01);
}

TEST(CulpritsTest, OfTwoRanksOneIsNamedToo) {
  Waits waits(2, 4);
  waits.Add(1, RootCause::kDataLoading, {30, 33, 29, 31});
  EXPECT_THAT(waits.Named(), ElementsAre(1));
}

TEST(CulpritsTest, OneRoundThatIsFarBeyondAllOthersIsNamed) {
  Waits waits(8, 6);
  for (size_t r = 0; r < 8; ++r) waits.Add(r, RootCause::kKernel, {1, 0, 2, 1.5, 0.5, 1});
  waits.Add(5, RootCause::kHost, {0, 0, 90, 0, 0, 0});
  EXPECT_THAT(waits.Named(), ElementsAre(5));
  // Five times the others' largest may be chance.
  waits.table.wait_ns[{5, RootCause::kHost}][2] = 8 * kMillisecondNs;
  waits.Add(4, RootCause::kHost, {0, 3, 0, 0, 0, 0});
  EXPECT_THAT(waits.Named(), IsEmpty());
}

TEST(CulpritsTest, KernelsThatVaryDoNotHideWhatOneRankAloneDoes) {
  Waits waits(4, 6);
  waits.Add(0, RootCause::kKernel, {9, 0, 4, 7, 0, 0});
  waits.Add(1, RootCause::kKernel, {0, 8, 5, 0, 9, 0});
  waits.Add(2, RootCause::kKernel, {3, 0, 0, 8, 0, 6});
  waits.Add(2, RootCause::kCheckpoint, {0, 0, 0, 12, 0, 0});
  const std::vector<WaitCulprit> culprits = waits.Find();
  ASSERT_EQ(culprits.size(), 1u);
  EXPECT_EQ(culprits[0].rank_index, 2u);
  EXPECT_EQ(culprits[0].wait_ns, std::llround(12 * kMillisecondNs));  // Its kernels are as anybody's.
}

TEST(CulpritsTest, TheWorseOfTwoDoesNotHideTheOther) {
  Waits waits(4, 5);
  waits.Add(1, RootCause::kDataLoading, {50, 52, 49, 51, 50});
  waits.Add(3, RootCause::kKernel, {20, 21, 19, 20, 22});
  waits.Add(0, RootCause::kKernel, {1, 0, 2, 1, 0});
  EXPECT_THAT(waits.Named(), ElementsAre(1, 3));
}

TEST(CulpritsTest, AnotherThatStalledOnceHidesNeitherTheOneThatIsLateAgainAndAgainNorItself) {
  Waits waits(4, 8);
  waits.Add(3, RootCause::kDataLoading, {20, 21, 2, 20, 22, 21, 20, 19});
  waits.Add(0, RootCause::kDataLoading, {0, 0, 120, 0, 0, 0, 0, 0});
  EXPECT_THAT(waits.Named(), ElementsAre(3, 0));
}

TEST(CulpritsTest, OfTwoRanksTheOtherIsNotNamedForWhatTheFirstLeaves) {
  Waits waits(2, 8);
  waits.Add(1, RootCause::kHost, {0, 60, 0, 0, 61, 0, 0, 60});
  waits.Add(0, RootCause::kKernel, {3, 0, 2, 4, 0, 1, 2, 0});
  waits.Add(1, RootCause::kKernel, {0, 2, 0, 0, 3, 0, 0, 1});
  EXPECT_THAT(waits.Named(), ElementsAre(1));
}

TEST(CulpritsTest, WhoIsBehindLittleOfTheWaitingIsNotNamed) {
  Waits waits(4, 3);
  waits.Add(2, RootCause::kKernel, {3, 3.1, 2.9});
  EXPECT_THAT(waits.Named(), ElementsAre(2));
  EXPECT_THAT(waits.Named(/*unexplained_ms=*/1000), IsEmpty());
}

TEST(CulpritsTest, WhoIsBehindLittleBesideRanksWithoutATraceIsNotNamed) {
  Waits waits(4, 3);
  waits.Add(2, RootCause::kKernel, {30, 31, 29});
  waits.table.unrecorded_ns = 400 * kMillisecondNs;
  EXPECT_THAT(waits.Named(), ElementsAre(2));
  waits.table.unrecorded_ns = 500 * kMillisecondNs;
  EXPECT_THAT(waits.Named(), IsEmpty());
}

TEST(CulpritsTest, ASlowLinkIsNamedWhereItRecurs) {
  RootCauseRow link;
  link.cause = RootCause::kSlowLink;
  link.rank_indices = {4, 6};
  link.direct_wait_ns = 800;
  link.wait_ratio = 0.8;
  WaitTable table;
  table.windows.assign(8, 0);
  table.round_count = 3;
  link.pattern = WaitPattern::kOneOff;
  EXPECT_THAT(FindCulprits(table, {link}, 1000), IsEmpty());
  link.pattern = WaitPattern::kChronic;
  const std::vector<WaitCulprit> culprits = FindCulprits(table, {link}, 1000);
  ASSERT_EQ(culprits.size(), 1u);
  EXPECT_FALSE(culprits[0].rank_index.has_value());
  EXPECT_THAT(culprits[0].rank_indices, ElementsAre(4, 6));
}

}  // namespace
}  // namespace lockstep::analysis
