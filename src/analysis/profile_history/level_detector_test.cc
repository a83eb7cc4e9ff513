#include "analysis/profile_history/level_detector.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace lockstep::profile_history {
namespace {

std::vector<LevelState> ObserveAll(LevelDetector& detector, const std::vector<double>& values, double whole = 0) {
  std::vector<LevelState> states;
  for (const double value : values) states.push_back(detector.Observe(value, whole));
  return states;
}

LevelDetector Steady(double level, int count = 12) {
  LevelDetector detector({});
  for (int i = 0; i < count; ++i) detector.Observe(level * (1 + 0.002 * (i % 3)), 0);
  return detector;
}

TEST(LevelDetectorTest, ALevelIsLearnedBeforeAnythingIsCalled) {
  LevelDetector detector({});
  const auto states = ObserveAll(detector, {1, 9, 1, 5, 1, 7, 2});
  for (const LevelState state : states) EXPECT_EQ(state, LevelState::kLearning);
  EXPECT_FALSE(detector.is_known());
}

TEST(LevelDetectorTest, OneSlowCaptureIsPartOfTheLevelAndTwoAreANewOne) {
  LevelDetector detector = Steady(100, 30);
  EXPECT_EQ(ObserveAll(detector, {120, 100, 121, 122}),
            (std::vector{LevelState::kSuspect, LevelState::kSteady, LevelState::kSuspect, LevelState::kChanged}));
  EXPECT_NEAR(detector.change().before, 100.2, 0.2);
  EXPECT_DOUBLE_EQ(detector.change().after, 121.5);
  EXPECT_EQ(detector.change().value_count, 2u);
  EXPECT_FALSE(detector.is_known()) << "the past begins anew";
  EXPECT_DOUBLE_EQ(*detector.level(), 121.5);
}

TEST(LevelDetectorTest, WhatIsNotWellKnownOrWasSeenBeforeTakesThree) {
  LevelDetector young = Steady(100);
  EXPECT_EQ(ObserveAll(young, {120, 120, 120}),
            (std::vector{LevelState::kSuspect, LevelState::kSuspect, LevelState::kChanged}));
  LevelDetector old = Steady(100, 30);
  ObserveAll(old, {130, 100});
  EXPECT_EQ(ObserveAll(old, {120, 120, 120}),
            (std::vector{LevelState::kSuspect, LevelState::kSuspect, LevelState::kChanged}));
}

TEST(LevelDetectorTest, OneOnEachSideIsNoLevel) {
  LevelDetector detector = Steady(100);
  EXPECT_EQ(ObserveAll(detector, {120, 80, 120}),
            (std::vector{LevelState::kSuspect, LevelState::kSuspect, LevelState::kSuspect}));
}

TEST(LevelDetectorTest, WhatIsTwiceAsLongIsCalledAtOnce) {
  LevelDetector detector = Steady(100);
  EXPECT_EQ(detector.Observe(210, 0), LevelState::kChanged);
  EXPECT_NEAR(detector.change().ratio(), 1.1, 0.01);
  LevelDetector falling = Steady(100);
  EXPECT_EQ(falling.Observe(49, 0), LevelState::kChanged);
}

TEST(LevelDetectorTest, SmallChangesAreNone) {
  LevelDetector detector = Steady(100);
  EXPECT_EQ(ObserveAll(detector, {104.5, 104.5, 104.5, 95.6, 95.6}), std::vector(5, LevelState::kSteady));
  // Thrice as long, of a step of which it is little.
  LevelDetector part = Steady(0.5);
  EXPECT_EQ(ObserveAll(part, {1.5, 1.5, 1.5}, 100), std::vector(3, LevelState::kSteady));
}

TEST(LevelDetectorTest, ANoisyFigureIsGivenItsNoise) {
  LevelDetector detector({});
  for (int i = 0; i < 12; ++i) detector.Observe(i % 2 == 0 ? 90 : 110, 0);
  EXPECT_EQ(ObserveAll(detector, {125, 125, 125}), std::vector(3, LevelState::kSteady));
}

TEST(LevelDetectorTest, SuspectsThatAnotherFigureConfirmsAreANewLevel) {
  LevelDetector detector = Steady(100);
  EXPECT_FALSE(detector.AcceptSuspects());
  EXPECT_EQ(detector.Observe(150, 0), LevelState::kSuspect);
  EXPECT_TRUE(detector.AcceptSuspects());
  EXPECT_EQ(detector.change().value_count, 1u);
  EXPECT_DOUBLE_EQ(*detector.level(), 150);
}

TEST(LevelDetectorTest, ACreepingFigureIsCalled) {
  // One percent more with each capture: a window that slides along would follow it.
  LevelDetector detector({});
  size_t called = 0;
  double value = 100;
  for (int i = 0; i < 100; ++i) {
    if (i > 40) value *= 1.01;
    called += detector.Observe(value * (i % 2 == 0 ? 0.995 : 1.005), 0) == LevelState::kChanged ? 1 : 0;
  }
  EXPECT_GE(called, 1u);
}

TEST(LevelDetectorTest, NothingIsMadeOfZeros) {
  LevelDetector detector({});
  EXPECT_EQ(ObserveAll(detector, std::vector<double>(12, 0)).back(), LevelState::kSteady);
  EXPECT_EQ(detector.Observe(1, 100), LevelState::kSteady) << "of 100 that is nothing";
  EXPECT_EQ(ObserveAll(detector, {10, 10, 10}, 100),
            (std::vector{LevelState::kSuspect, LevelState::kSuspect, LevelState::kChanged}));
  EXPECT_EQ(detector.change().ratio(), 0);
}

// What the rule is worth, by simulation: docs/watch.md has the table that this prints.

enum class Noise { kNormal, kHeavyTails, kOutliers, kSkewed, kCorrelated };

class Series {
 public:
  Series(Noise noise, double deviation, uint64_t seed) : noise_(noise), deviation_(deviation), random_(seed) {}

  double Next() {
    std::normal_distribution<double> normal;
    double error = normal(random_);
    switch (noise_) {
      case Noise::kNormal: break;
      case Noise::kHeavyTails: {  // Student's t with 3 degrees of freedom, of this standard deviation
        std::chi_squared_distribution<double> chi(3);
        error /= std::sqrt(chi(random_));
        break;
      }
      case Noise::kOutliers:  // one capture in twenty is ten deviations slow, as with a checkpoint in it
        if (std::uniform_real_distribution<double>()(random_) < 0.05) error += 10;
        break;
      case Noise::kSkewed:  // log-normal: a long tail of slow captures
        error = (std::exp(0.75 * error) - std::exp(0.28125)) / 1.15;
        break;
      case Noise::kCorrelated:  // a capture is like the one before
        error = before_ = 0.5 * before_ + std::sqrt(0.75) * error;
        break;
    }
    return 100 * (1 + deviation_ * error);
  }

 private:
  const Noise noise_;
  const double deviation_;
  double before_ = 0;
  std::mt19937_64 random_;
};

#ifdef LOCKSTEP_SANITIZED
constexpr size_t kSeriesCount = 100;  // Of a thousand, for time.
#else
constexpr size_t kSeriesCount = 1000;
#endif
constexpr size_t kCaptureCount = 100;

/// How many of kSeriesCount series x kCaptureCount captures of nothing but noise have a false alarm: a level that is
/// called worse.
size_t CountFalseAlarms(Noise noise, double deviation) {
  size_t count = 0;
  for (size_t s = 0; s < kSeriesCount; ++s) {
    Series series(noise, deviation, 1000 + s);
    LevelDetector detector({});
    bool called = false;
    for (size_t i = 0; i < kCaptureCount; ++i) {
      called = (detector.Observe(series.Next(), 0) == LevelState::kChanged && detector.change().ratio() > 0) || called;
    }
    count += called ? 1 : 0;
  }
  return count;
}

/// How many of kSeriesCount series that become `more` slower after 30 captures are called within five.
size_t CountDetections(Noise noise, double deviation, double more) {
  size_t count = 0;
  for (size_t s = 0; s < kSeriesCount; ++s) {
    Series series(noise, deviation, 5000 + s);
    LevelDetector detector({});
    for (size_t i = 0; i < 30; ++i) detector.Observe(series.Next(), 0);
    bool called = false;
    for (size_t i = 0; i < 5 && !called; ++i) {
      called = detector.Observe(series.Next() * (1 + more), 0) == LevelState::kChanged && detector.change().ratio() > 0;
    }
    count += called ? 1 : 0;
  }
  return count;
}

struct Row {
  const char* name;
  Noise noise;
  double deviation;
  size_t most_false;   // Of a thousand series; more than are seen, so that another library's random numbers do, too.
  size_t least_of_10;  // +10 %
  size_t least_of_20;
};

TEST(LevelDetectorTest, FalseAlarmsAreFewAndRealOnesAreCalled) {
  const std::vector<Row> rows = {
      {"normal", Noise::kNormal, 0.01, 3, 990, 990},
      {"normal", Noise::kNormal, 0.03, 5, 120, 950},
      {"normal", Noise::kNormal, 0.05, 5, 0, 300},
      {"heavy tails", Noise::kHeavyTails, 0.01, 5, 990, 990},
      {"heavy tails", Noise::kHeavyTails, 0.03, 30, 600, 970},
      {"heavy tails", Noise::kHeavyTails, 0.05, 30, 50, 800},
      {"outliers", Noise::kOutliers, 0.01, 90, 960, 970},
      {"outliers", Noise::kOutliers, 0.03, 90, 50, 800},
      {"skewed", Noise::kSkewed, 0.01, 10, 980, 990},
      {"skewed", Noise::kSkewed, 0.03, 90, 550, 970},
      {"skewed", Noise::kSkewed, 0.05, 90, 80, 750},
      {"correlated", Noise::kCorrelated, 0.01, 5, 990, 990},
      {"correlated", Noise::kCorrelated, 0.03, 30, 200, 920},
      {"correlated", Noise::kCorrelated, 0.05, 40, 0, 400},
  };
  std::printf("| noise | deviation | false alarms | +10 %% | +20 %% |\n");
  for (const Row& row : rows) {
    const size_t alarms = CountFalseAlarms(row.noise, row.deviation);
    const size_t of_10 = CountDetections(row.noise, row.deviation, 0.1);
    const size_t of_20 = CountDetections(row.noise, row.deviation, 0.2);
    const auto percent = [](size_t count) { return 100.0 * static_cast<double>(count) / kSeriesCount; };
    std::printf("| %s | %g %% | %zu | %.1f %% | %.1f %% |\n", row.name, row.deviation * 100, alarms, percent(of_10),
                percent(of_20));
    constexpr size_t kSlack = kSeriesCount < 1000 ? 4 : 0;
    EXPECT_LE(alarms, row.most_false * kSeriesCount / 1000 + kSlack) << row.name << row.deviation;
    EXPECT_GE(of_10 + kSlack, row.least_of_10 * kSeriesCount / 1000) << row.name << row.deviation;
    EXPECT_GE(of_20 + kSlack, row.least_of_20 * kSeriesCount / 1000) << row.name << row.deviation;
  }
}

}  // namespace
}  // namespace lockstep::profile_history
