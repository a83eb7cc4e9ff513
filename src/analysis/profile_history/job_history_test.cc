#include "analysis/profile_history/job_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "analysis/finding.h"
#include "base/nanoseconds.h"

namespace lockstep::profile_history {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A job of four ranks; each `slow_ms` more for those named.
CaptureRecord Capture(int number, double step_ms, double extra_ms = 0, std::vector<int32_t> slow = {}) {
  CaptureRecord record{.capture = std::to_string(number), .time_unix_ns = number * 1000, .job_id = "7"};
  record.world_size = 4;
  record.figures = {
      {.name = "step", .unit = "ns", .value = (step_ms + extra_ms) * kMillisecondNs},
      {.name = "idle", .unit = "ns", .value = 3 * kMillisecondNs, .whole = (step_ms + extra_ms) * kMillisecondNs}};
  for (int32_t rank = 0; rank < 4; ++rank) {
    const bool is_slow = std::find(slow.begin(), slow.end(), rank) != slow.end();
    record.own_ns.emplace_back(rank, static_cast<int64_t>((step_ms - 10 + (is_slow ? extra_ms : 0)) * kMillisecondNs));
  }
  if (!slow.empty()) {
    record.figures.push_back(
        {.name = "own_time_ratio", .unit = "ratio", .value = 1 + extra_ms / step_ms, .whole = 0, .rank = slow.front()});
    record.findings.push_back({.id = "straggler",
                               .severity = analysis::FindingSeverity::kWarning,
                               .ranks = slow,
                               .title = "late",
                               .evidence = {},
                               .advice = {},
                               .gain_ns_per_step = static_cast<int64_t>(extra_ms * kMillisecondNs),
                               .gain_ratio = {}});
  } else {
    record.figures.push_back({.name = "own_time_ratio", .unit = "ratio", .value = 1.01, .whole = 0, .rank = 2});
  }
  record.findings.push_back({.id = "exposed_communication",
                             .severity = analysis::FindingSeverity::kWarning,
                             .ranks = {},
                             .title = "exposed",
                             .evidence = {},
                             .advice = {},
                             .gain_ns_per_step = 8 * kMillisecondNs,
                             .gain_ratio = {}});
  return record;
}

/// Observes captures `first` .. `first + count - 1`; regressions and what is over, by capture.
struct Told {
  std::vector<std::pair<int, Regression>> regressions;
  std::vector<std::string> recovered;
  std::vector<std::string> accepted;
};
Told ObserveMany(JobHistory& history, int first, int count, double step_ms, double extra_ms = 0,
                 const std::vector<int32_t>& slow = {}) {
  Told told;
  for (int i = first; i < first + count; ++i) {
    Judgement judgement = history.Observe(Capture(i, step_ms * (1 + 0.002 * (i % 3)), extra_ms, slow));
    if (judgement.regression) told.regressions.emplace_back(i, *judgement.regression);
    for (const FigureChange& change : judgement.recovered) told.recovered.push_back(change.figure);
    for (const FigureChange& change : judgement.accepted) told.accepted.push_back(change.figure);
  }
  return told;
}

TEST(JobHistoryTest, ASlowRankIsCalledOnceAndNamed) {
  JobHistory history;
  EXPECT_THAT(ObserveMany(history, 0, 30, 100).regressions, IsEmpty());
  const Told told = ObserveMany(history, 30, 20, 100, 25, {3});
  ASSERT_EQ(told.regressions.size(), 1u);
  const auto& [at, regression] = told.regressions.front();
  EXPECT_EQ(at, 31) << "the second";
  EXPECT_EQ(regression.since_capture, "30");
  EXPECT_EQ(regression.since_unix_ns, 30'000);
  EXPECT_EQ(regression.reference, "29");
  EXPECT_THAT(regression.ranks, ElementsAre(3));
  ASSERT_TRUE(regression.finding);
  EXPECT_EQ(regression.finding->id, "straggler");
  ASSERT_EQ(regression.figures.size(), 2u);
  EXPECT_EQ(regression.figures[0].figure, "step");
  EXPECT_NEAR(regression.figures[0].ratio(), 0.25, 0.01);
  EXPECT_EQ(regression.figures[1].figure, "own_time_ratio");
  EXPECT_EQ(regression.figures[1].rank, 3);
  EXPECT_EQ(history.regression_count(), 1u);
  EXPECT_TRUE(history.figures().at("step").regression);
  EXPECT_FALSE(history.figures().at("idle").regression);
}

TEST(JobHistoryTest, AJobThatIsSlowerOnAllRanksNamesNone) {
  JobHistory history;
  ObserveMany(history, 0, 30, 100);
  const Told told = ObserveMany(history, 30, 3, 130);
  ASSERT_EQ(told.regressions.size(), 1u);
  EXPECT_THAT(told.regressions[0].second.ranks, IsEmpty());
  EXPECT_FALSE(told.regressions[0].second.finding) << "no finding costs more than before";
}

TEST(JobHistoryTest, WhatIsAsBeforeAgainIsSaidAndAFasterJobIsNotCalled) {
  JobHistory history;
  ObserveMany(history, 0, 30, 100);
  EXPECT_EQ(ObserveMany(history, 30, 12, 130).regressions.size(), 1u);
  const Told back = ObserveMany(history, 42, 12, 100);
  EXPECT_THAT(back.regressions, IsEmpty());
  EXPECT_THAT(back.recovered, ElementsAre("step"));
  EXPECT_FALSE(history.figures().at("step").regression);
  EXPECT_THAT(ObserveMany(history, 54, 20, 60).regressions, IsEmpty());
}

TEST(JobHistoryTest, ANewLevelIsHowTheJobIsAfterAWhileAndASecondOneIsCalledAgain) {
  JobHistory history({.accepted_count = 20});
  ObserveMany(history, 0, 30, 100);
  const Told slower = ObserveMany(history, 30, 40, 130);
  EXPECT_EQ(slower.regressions.size(), 1u);
  EXPECT_THAT(slower.accepted, ElementsAre("step"));
  EXPECT_EQ(ObserveMany(history, 70, 10, 160).regressions.size(), 1u);
}

TEST(JobHistoryTest, LessBandwidthIsWorseAndMoreIsNot) {
  const auto capture = [](int i, double rate) {
    CaptureRecord record{.capture = std::to_string(i), .time_unix_ns = i, .job_id = "7"};
    record.figures = {{.name = "busbw:all_reduce 4096", .unit = "bytes_per_s", .value = rate * (1 + 0.001 * (i % 2))}};
    return record;
  };
  for (const auto& [rate, count] : {std::pair(7e9, 1u), std::pair(13e9, 0u)}) {
    JobHistory history;
    for (int i = 0; i < 30; ++i) history.Observe(capture(i, 10e9));
    for (int i = 30; i < 35; ++i) history.Observe(capture(i, rate));
    EXPECT_EQ(history.regression_count(), count);
  }
}

TEST(JobHistoryTest, TheFirstCapturesAreWarmUpAndAnotherJobHasAPastOfItsOwn) {
  JobHistory history({.warm_up_count = 2});
  EXPECT_TRUE(history.Observe(Capture(0, 900)).is_warm_up);
  EXPECT_TRUE(history.Observe(Capture(1, 500)).is_warm_up);
  EXPECT_FALSE(history.Observe(Capture(2, 100)).is_warm_up);
  ObserveMany(history, 3, 30, 100);
  CaptureRecord other = Capture(33, 300);
  other.job_id = "8";
  EXPECT_TRUE(history.Observe(other).is_warm_up);
  EXPECT_EQ(history.capture_count(), 1u);
  other.world_size = 8;
  EXPECT_TRUE(history.Observe(other).is_warm_up);
}

TEST(JobHistoryTest, ARecordWithoutFiguresSaysNothing) {
  JobHistory history;
  ObserveMany(history, 0, 10, 100);
  CaptureRecord failed{.capture = "x", .time_unix_ns = 1, .job_id = "9"};
  history.Observe(failed);
  EXPECT_EQ(history.capture_count(), 10u) << "nor does it begin another job's past";
}

TEST(JobHistoryTest, TheSameRecordsGiveTheSameState) {
  JobHistory one;
  ObserveMany(one, 0, 30, 100);
  ObserveMany(one, 30, 1, 100, 25, {3});
  JobHistory other;
  ObserveMany(other, 0, 30, 100);
  ObserveMany(other, 30, 1, 100, 25, {3});
  // A watch that was restarted in between calls what the other does.
  EXPECT_EQ(ObserveMany(one, 31, 1, 100, 25, {3}).regressions.size(), 1u);
  EXPECT_EQ(ObserveMany(other, 31, 1, 100, 25, {3}).regressions.size(), 1u);
}

}  // namespace
}  // namespace lockstep::profile_history
