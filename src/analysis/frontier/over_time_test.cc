#include "analysis/frontier/over_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "analysis/frontier/account_for_test.h"
#include "analysis/frontier/job_stages.h"

namespace lockstep::frontier {
namespace {

using model::RankStages;
using model::Stage;
using model::StepStages;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr size_t kRanksOverTime = 4;
/// Nanoseconds that the stage of a rank takes in a step before the meeting.
using TimeOf = std::function<int64_t(int64_t step, size_t rank, Stage stage)>;

int64_t UsualNs(Stage stage) {
  switch (stage) {
    case Stage::kInput: return 1'000'000;
    case Stage::kForward: return 3'000'000;
    case Stage::kBackward: return 6'000'000;
    default: return 0;
  }
}

/// Ranks that meet once a step, and wait for the last of them.
JobStages JobOverTime(int64_t step_count, const TimeOf& time_of) {
  std::vector<RankStages> ranks(kRanksOverTime);
  for (int64_t number = 0; number < step_count; ++number) {
    std::vector<StepStages> steps(ranks.size());
    int64_t last_ns = 0;
    for (size_t i = 0; i < ranks.size(); ++i) {
      for (const Stage stage : {Stage::kInput, Stage::kForward, Stage::kBackward}) {
        steps[i].spans.push_back({stage, time_of(number, i, stage)});
        steps[i].duration_ns += steps[i].spans.back().duration_ns;
      }
      last_ns = std::max(last_ns, steps[i].duration_ns);
    }
    for (size_t i = 0; i < ranks.size(); ++i) {
      ranks[i].rank = static_cast<int32_t>(i) + 10;
      steps[i].number = number;
      steps[i].spans.push_back({Stage::kCommunication, last_ns - steps[i].duration_ns + 1'000});
      steps[i].duration_ns = last_ns + 1'000;
      ranks[i].steps.push_back(std::move(steps[i]));
    }
  }
  return AssessJob(std::move(ranks), {});
}

/// The rank takes so much longer in the stage in steps [begin, end).
TimeOf SlowBetween(int64_t begin, int64_t end, size_t slow_rank, Stage slow_stage, int64_t extra_ns) {
  return [=](int64_t step, size_t rank, Stage stage) {
    const bool is_slow = step >= begin && step < end && rank == slow_rank && stage == slow_stage;
    return UsualNs(stage) + (is_slow ? extra_ns : 0);
  };
}

/// Of a job whose marks are as they come: steps of 1 to 9 spans in any order, some that a rank lacks.
std::vector<RankStages> AnyRanks(std::mt19937_64& random, int64_t step_count) {
  std::vector<RankStages> ranks(1 + random() % 5);
  for (size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].rank = static_cast<int32_t>(i);
    for (int64_t number = 0; number < step_count; ++number) {
      if (random() % 50 == 0) continue;
      StepStages step{.number = number};
      for (uint64_t span = 0; span < 1 + random() % 9; ++span) {
        step.spans.push_back(
            {model::kStages[random() % model::kStages.size()], static_cast<int64_t>(random() % 1'000'000)});
        step.duration_ns += step.spans.back().duration_ns;
      }
      ranks[i].steps.push_back(std::move(step));
    }
  }
  return ranks;
}

TEST(OverTimeTest, WindowsAddUpToTheJobToTheNanosecond) {
  std::mt19937_64 random(11);
  for (const int64_t step_count : {1, 7, 59, 60, 61, 100, 433}) {
    const std::vector<RankStages> ranks = AnyRanks(random, step_count);
    const Accounting whole = Account(ranks);
    const JobStages job = AssessJob(ranks, {});
    EXPECT_EQ(job.account.total_ns, whole.total_ns);
    EXPECT_EQ(job.account.step_count, whole.step_count);
    EXPECT_EQ(job.account.left_out_count, whole.left_out_count);
    EXPECT_LE(job.over_time.windows.size(), kMostWindows);
    EXPECT_LE(job.over_time.coarse.size(), kMostCoarseWindows);
    for (const auto* windows : {&job.over_time.windows, &job.over_time.coarse}) {
      int64_t ns = 0;
      int64_t steps = 0;
      int64_t before = -1;
      model::StageTimes stages = {};
      std::vector<int64_t> costs(ranks.size());
      for (const Window& window : *windows) {
        EXPECT_LT(before, window.first_step);
        EXPECT_LE(window.first_step, window.last_step);
        before = window.last_step;
        ns += window.ns;
        steps += window.step_count;
        int64_t stages_ns = 0;
        for (const Stage stage : model::kStages) {
          model::At(stages, stage) += model::At(window.frontier_ns, stage);
          stages_ns += model::At(window.frontier_ns, stage);
        }
        EXPECT_EQ(stages_ns, window.ns);
        for (size_t i = 0; i < ranks.size(); ++i) costs[i] += window.rank_cost_ns[i];
      }
      EXPECT_EQ(ns, whole.total_ns);
      EXPECT_EQ(steps, whole.step_count);
      for (const Stage stage : model::kStages) {
        EXPECT_EQ(model::At(stages, stage), whole.At(stage).frontier_ns);
        for (size_t i = 0; i < ranks.size(); ++i) {
          costs[i] -= whole.At(stage).cost[i].ns;
          EXPECT_EQ(job.account.At(stage).cost[i].ns, whole.At(stage).cost[i].ns);
          EXPECT_EQ(job.account.At(stage).cost[i].largest_step, whole.At(stage).cost[i].largest_step);
          EXPECT_EQ(job.account.At(stage).leader_ns[i], whole.At(stage).leader_ns[i]);
        }
      }
      EXPECT_THAT(costs, ::testing::Each(0));
    }
  }
}

TEST(OverTimeTest, WindowsAreOfEquallyManySteps) {
  const OverTime over_time = JobOverTime(125, SlowBetween(0, 0, 0, Stage::kInput, 0)).over_time;
  ASSERT_THAT(over_time.windows, SizeIs(60));
  for (const Window& window : over_time.windows) {
    EXPECT_GE(window.step_count, 2);
    EXPECT_LE(window.step_count, 3);
    EXPECT_EQ(window.last_step - window.first_step + 1, window.step_count);
    EXPECT_EQ(window.median_step_ns, 10'001'000);
    EXPECT_EQ(window.largest_stage, Stage::kBackward);
    EXPECT_EQ(window.cost_ns, 0);
  }
  EXPECT_THAT(over_time.changes, IsEmpty());
  EXPECT_THAT(JobOverTime(0, {}).over_time.windows, IsEmpty());
}

TEST(OverTimeTest, AStragglerThatBeginsAndEndsIsAChangeOfItsSteps) {
  const OverTime over_time = JobOverTime(600, SlowBetween(400, 480, 3, Stage::kInput, 3'000'000)).over_time;
  ASSERT_THAT(over_time.changes, SizeIs(1));
  const Change& change = over_time.changes[0];
  EXPECT_EQ(change.window.first_step, 400);
  EXPECT_EQ(change.window.last_step, 479);
  EXPECT_EQ(change.usual_step_ns, 10'001'000);
  EXPECT_NEAR(change.ratio, 0.3, 0.001);
  EXPECT_EQ(change.rank_idx, 3U);
  EXPECT_EQ(change.stage, Stage::kInput);
  EXPECT_EQ(change.window.cost_ns, 80 * 3'000'000);
}

TEST(OverTimeTest, AStragglerOfMostOfTheJobIsTheChangeAndNotTheFewStepsWithoutIt) {
  const OverTime over_time = JobOverTime(200, SlowBetween(60, 200, 1, Stage::kForward, 5'000'000)).over_time;
  ASSERT_THAT(over_time.changes, SizeIs(1));
  EXPECT_EQ(over_time.changes[0].window.first_step, 60);
  EXPECT_EQ(over_time.changes[0].window.last_step, 199);
  EXPECT_EQ(over_time.changes[0].rank_idx, 1U);
}

TEST(OverTimeTest, NoiseBesideAChangeIsNoPartOfIt) {
  const auto noisy = [](int64_t step, size_t rank, Stage stage) {
    const bool is_noise = step >= 116 && step < 120;
    return SlowBetween(120, 220, 1, Stage::kForward, 5'000'000)(step, rank, stage) +
           (stage == Stage::kBackward && (is_noise || step >= 220) ? 1'500'000 : 0);
  };
  const OverTime over_time = JobOverTime(240, noisy).over_time;
  ASSERT_THAT(over_time.changes, SizeIs(1));
  EXPECT_EQ(over_time.changes[0].window.first_step, 120);
  EXPECT_EQ(over_time.changes[0].window.last_step, 219);
  EXPECT_EQ(over_time.changes[0].rank_idx, 1U);
}

TEST(OverTimeTest, WhatAllRanksTakeLongerForIsAStageOfNoRank) {
  const OverTime over_time = JobOverTime(300, [](int64_t step, size_t, Stage stage) {
                               return UsualNs(stage) * (step >= 200 && stage == Stage::kBackward ? 2 : 1);
                             }).over_time;
  ASSERT_THAT(over_time.changes, SizeIs(1));
  EXPECT_EQ(over_time.changes[0].rank_idx, std::nullopt);
  EXPECT_EQ(over_time.changes[0].stage, Stage::kBackward);
}

TEST(OverTimeTest, OneLongStepOrEachTenthIsNoChange) {
  const auto one = [](int64_t step, size_t, Stage stage) { return UsualNs(stage) * (step == 250 ? 1000 : 1); };
  EXPECT_THAT(JobOverTime(600, one).over_time.changes, IsEmpty());
  const auto tenth = [](int64_t step, size_t, Stage stage) { return UsualNs(stage) * (step % 10 == 9 ? 3 : 1); };
  for (const int64_t steps : {40, 60, 200, 600}) EXPECT_THAT(JobOverTime(steps, tenth).over_time.changes, IsEmpty());
}

TEST(OverTimeTest, ChanceIsNoChange) {
  std::mt19937_64 random(3);
  int told = 0;
  for (int job = 0; job < 300; ++job) {
    const double spread = 0.02 * static_cast<double>(1 + job % 20);
    std::lognormal_distribution<double> factor(0, spread);
    const auto uneven = [&](int64_t, size_t, Stage stage) {
      return static_cast<int64_t>(static_cast<double>(UsualNs(stage)) * factor(random));
    };
    told += JobOverTime(30 + job, uneven).over_time.changes.empty() ? 0 : 1;
  }
  EXPECT_LE(told, 1);
}

}  // namespace
}  // namespace lockstep::frontier
