#include "analysis/clock_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/nanoseconds.h"

namespace lockstep::analysis {
namespace {

constexpr int64_t kFirstSampleNs = 1'700'000'000'000'000'000;

/// `noise` gives the difference of the two ends' lateness, ns.
template <typename Noise>
std::vector<ClockSample> Samples(size_t count, int64_t span_ns, int64_t offset_ns, double drift_ppm, Noise noise) {
  std::vector<ClockSample> samples;
  for (size_t i = 0; i < count; ++i) {
    const int64_t elapsed_ns = span_ns * static_cast<int64_t>(i) / static_cast<int64_t>(count);
    const int64_t drifted_ns = std::llround(drift_ppm * 1e-6 * static_cast<double>(elapsed_ns - span_ns / 2));
    samples.push_back({kFirstSampleNs + elapsed_ns, offset_ns + drifted_ns + static_cast<int64_t>(noise())});
  }
  return samples;
}

TEST(ClockFitTest, OneSampleIsTheOffset) {
  const ClockFit fit = FitClock({{kFirstSampleNs, -42}});
  EXPECT_EQ(fit.offset_ns, -42);
  EXPECT_EQ(fit.sample_count, 1u);
  EXPECT_GE(fit.uncertainty_ns, 1000);
}

TEST(ClockFitTest, AnOffsetOfSecondsIsExact) {
  const ClockFit fit = FitClock(Samples(100, kSecondNs, 3 * kSecondNs + 7, 0, [] { return 0; }));
  EXPECT_EQ(fit.offset_ns, 3 * kSecondNs + 7);
  EXPECT_EQ(fit.drift_ppm, 0);
}

TEST(ClockFitTest, AFifthOfWildOutliersMovesNothing) {
  std::mt19937 random(1);
  std::normal_distribution<double> noise(0, 3'000);
  const ClockFit fit =
      FitClock(Samples(200, kSecondNs, 250'000, 0, [&] { return random() % 5 == 0 ? 50e6 : noise(random); }));
  EXPECT_NEAR(static_cast<double>(fit.offset_ns), 250'000, 3'000);
}

TEST(ClockFitTest, LatenessOfOneSideMovesLittle) {
  std::mt19937 random(2);
  std::exponential_distribution<double> late(1.0 / 20'000);
  const ClockFit fit = FitClock(Samples(400, kSecondNs, -8'000'000, 0, [&] { return late(random); }));
  EXPECT_NEAR(static_cast<double>(fit.offset_ns), -8'000'000, 10'000);
  EXPECT_GE(fit.uncertainty_ns, std::abs(fit.offset_ns + 8'000'000));
}

TEST(ClockFitTest, DriftOverALongWindowIsFound) {
  for (const double ppm : {1.0, -5.0, 20.0, 50.0}) {
    std::mt19937 random(3);
    std::normal_distribution<double> noise(0, 4'000);
    const ClockFit fit = FitClock(Samples(500, 20 * kSecondNs, 1'000'000, ppm, [&] { return noise(random); }));
    EXPECT_NEAR(fit.drift_ppm, ppm, 0.3) << ppm;
    EXPECT_NEAR(static_cast<double>(fit.offset_ns), 1'000'000, 2'000) << ppm;
  }
}

TEST(ClockFitTest, NoiseIsNotTakenForDrift) {
  int found = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> noise(0, 10'000);
    if (FitClock(Samples(60, 10 * kSecondNs, 0, 0, [&] { return noise(random); })).drift_ppm != 0) ++found;
  }
  EXPECT_LE(found, 5);
}

TEST(ClockFitTest, AShortWindowHasNoDrift) {
  const ClockFit fit = FitClock(Samples(100, kSecondNs, 0, 100, [] { return 0; }));
  EXPECT_EQ(fit.drift_ppm, 0);
}

TEST(ClockFitTest, ADriftThatNoClockHasIsLeftOut) {
  const ClockFit fit = FitClock(Samples(100, 10 * kSecondNs, 0, 5'000, [] { return 0; }));
  EXPECT_EQ(fit.drift_ppm, 0);
}

TEST(ClockFitTest, TheStatedUncertaintyCoversTheError) {
  int covered = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> noise(0, 5'000);
    const ClockFit fit = FitClock(Samples(5 + seed % 40, kSecondNs, 77'000, 0, [&] { return noise(random); }));
    if (std::abs(fit.offset_ns - 77'000) <= fit.uncertainty_ns) ++covered;
  }
  EXPECT_GE(covered, 190);
}

}  // namespace
}  // namespace lockstep::analysis
