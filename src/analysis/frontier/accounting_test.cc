#include "analysis/frontier/accounting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "analysis/frontier/account_for_test.h"
#include "analysis/frontier/increments.h"
#include "analysis/frontier/verdict.h"

namespace lockstep::frontier {
namespace {

using model::At;
using model::RankStages;
using model::Stage;
using model::StageSpan;
using model::StageTimes;
using model::StepStages;
using ::testing::ElementsAre;

StepStages Step(int64_t number, std::vector<StageSpan> spans) {
  StepStages step{.number = number, .spans = std::move(spans)};
  for (const StageSpan& span : step.spans) step.duration_ns += span.duration_ns;
  return step;
}

RankStages Rank(int32_t number, std::vector<StepStages> steps) {
  RankStages rank;
  rank.rank = number;
  rank.steps = std::move(steps);
  return rank;
}

StageTimes Times(std::initializer_list<std::pair<Stage, int64_t>> known) {
  StageTimes times = {};
  for (const auto& [stage, ns] : known) At(times, stage) = ns;
  return times;
}

TEST(IncrementsTest, AddUpToTheLongestRankAndNameWhoLeads) {
  // Rank 1 is late with its input, rank 0 waits for it in the collective.
  const std::vector<StageTimes> ranks = {
      Times({{Stage::kInput, 10}, {Stage::kForward, 20}, {Stage::kBackward, 40}, {Stage::kCommunication, 35}}),
      Times({{Stage::kInput, 40}, {Stage::kForward, 21}, {Stage::kBackward, 39}, {Stage::kCommunication, 5}})};
  const auto increments = Increments(ranks);
  const auto at = [&](Stage stage) { return increments[static_cast<size_t>(stage)]; };
  EXPECT_EQ(at(Stage::kInput).ns, 40);
  EXPECT_EQ(at(Stage::kInput).leader_idx, 1U);
  EXPECT_EQ(at(Stage::kForward).ns, 21);
  EXPECT_EQ(at(Stage::kBackward).ns, 39);
  EXPECT_EQ(at(Stage::kCommunication).ns, 5);
  EXPECT_EQ(at(Stage::kOptimizer).ns, 0);
}

TEST(IncrementsTest, AreNeverNegativeAndExactForAnyTimes) {
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<StageTimes> ranks(1 + random() % 9);
    int64_t longest_ns = 0;
    for (StageTimes& times : ranks) {
      for (int64_t& ns : times) ns = random() % 3 == 0 ? 0 : static_cast<int64_t>(random() % 1'000'000'000'000);
      longest_ns = std::max(longest_ns, std::accumulate(times.begin(), times.end(), int64_t{}));
    }
    int64_t sum_ns = 0;
    for (const Increment& increment : Increments(ranks)) {
      ASSERT_GE(increment.ns, 0);
      ASSERT_LT(increment.leader_idx, ranks.size());
      sum_ns += increment.ns;
    }
    ASSERT_EQ(sum_ns, longest_ns);
  }
}

TEST(RoundsTest, AStepIsCutBehindEachWaitThatAllRanksShare) {
  const Rounds rounds = CutRoundsOf({Rank(0, {Step(0, {{Stage::kForward, 5},
                                                       {Stage::kCommunication, 1},
                                                       {Stage::kBackward, 7},
                                                       {Stage::kCommunication, 2},
                                                       {Stage::kOptimizer, 3}})}),
                                     Rank(1, {Step(0, {{Stage::kForward, 4},
                                                       {Stage::kCommunication, 2},
                                                       {Stage::kBackward, 8},
                                                       {Stage::kCommunication, 1},
                                                       {Stage::kOptimizer, 4}})})});
  ASSERT_EQ(rounds.rounds.size(), 2U);
  EXPECT_TRUE(rounds.rounds[0].ends_in_meeting);
  EXPECT_EQ(At(rounds.rounds[0].ranks[0], Stage::kForward), 5);
  EXPECT_EQ(At(rounds.rounds[0].ranks[0], Stage::kBackward), 0);
  EXPECT_EQ(At(rounds.rounds[1].ranks[1], Stage::kBackward), 8);
  EXPECT_EQ(At(rounds.rounds[1].ranks[1], Stage::kOptimizer), 0);
  EXPECT_EQ(rounds.tail_ns, 4);
}

TEST(RoundsTest, WhereRanksWaitUnequallyOftenTheLastWaitIsTheMeeting) {
  const Rounds rounds = CutRoundsOf({Rank(0, {Step(0, {{Stage::kForward, 5},
                                                       {Stage::kCommunication, 1},
                                                       {Stage::kBackward, 7},
                                                       {Stage::kCommunication, 2}})}),
                                     Rank(1, {Step(0, {{Stage::kForward, 4}, {Stage::kCommunication, 3}})})});
  ASSERT_EQ(rounds.rounds.size(), 1U);
  EXPECT_TRUE(rounds.rounds[0].ends_in_meeting);
  EXPECT_EQ(At(rounds.rounds[0].ranks[0], Stage::kCommunication), 3);
}

TEST(RoundsTest, AStepInWhichARankNeverWaitsEndsWithoutAMeeting) {
  const Rounds rounds = CutRoundsOf({Rank(0, {Step(0, {{Stage::kForward, 5}, {Stage::kCommunication, 1}})}),
                                     Rank(1, {Step(0, {{Stage::kForward, 4}})})});
  ASSERT_EQ(rounds.rounds.size(), 1U);
  EXPECT_FALSE(rounds.rounds[0].ends_in_meeting);
}

TEST(RoundsTest, AStepThatARankLacksIsLeftOutAndEndsWhatWasOpen) {
  const auto step = [](int64_t number) {
    return Step(number, {{Stage::kForward, 5}, {Stage::kCommunication, 1}, {Stage::kOptimizer, 2}});
  };
  const Rounds rounds = CutRoundsOf({Rank(0, {step(0), step(1), step(2)}), Rank(1, {step(0), step(2)})});
  EXPECT_EQ(rounds.step_count, 2);
  EXPECT_EQ(rounds.left_out_count, 1);
  ASSERT_EQ(rounds.rounds.size(), 3U);
  EXPECT_FALSE(rounds.rounds[1].ends_in_meeting) << "the optimizer of step 0";
  EXPECT_EQ(At(rounds.rounds[2].ranks[0], Stage::kOptimizer), 0);
}

/// A job of four ranks that meet once a step; `rank` takes `extra_ns` longer in `stage`, and the others wait for it.
std::vector<RankStages> SlowJob(size_t rank, Stage stage, int64_t extra_ns, int64_t step_count) {
  std::vector<RankStages> ranks(4);
  const bool is_before = stage != Stage::kOptimizer && stage != Stage::kCheckpoint;
  for (int64_t number = 0; number < step_count; ++number) {
    for (size_t i = 0; i < ranks.size(); ++i) {
      ranks[i].rank = static_cast<int32_t>(i);
      const auto extra = [&](Stage of) { return i == rank && of == stage ? extra_ns : 0; };
      // Whoever is slow behind the meeting is awaited in the next step.
      const bool is_awaited = is_before || number > 0;
      const int64_t wait_ns = 100 + (i != rank && is_awaited ? extra_ns : 0);
      ranks[i].steps.push_back(Step(number, {{Stage::kInput, 1000 + extra(Stage::kInput)},
                                             {Stage::kForward, 20000 + extra(Stage::kForward)},
                                             {Stage::kBackward, 40000 + extra(Stage::kBackward)},
                                             {Stage::kCommunication, wait_ns},
                                             {Stage::kOptimizer, 5000 + extra(Stage::kOptimizer)},
                                             {Stage::kCheckpoint, 10 + extra(Stage::kCheckpoint)}}));
    }
  }
  return ranks;
}

TEST(AccountingTest, WhoeverIsAwaitedCostsWhatTheJobWouldSave) {
  for (const Stage stage : {Stage::kInput, Stage::kForward, Stage::kBackward, Stage::kOptimizer, Stage::kCheckpoint}) {
    const Accounting account = Account(SlowJob(2, stage, 7000, 10));
    const bool is_before = stage != Stage::kOptimizer && stage != Stage::kCheckpoint;
    const int64_t times = is_before ? 10 : 9;  // The last step's end is awaited by nobody yet.
    EXPECT_EQ(account.At(stage).cost[2].round_count, times) << StageName(stage);
    EXPECT_EQ(account.At(stage).imbalance_ns, 7000 * times);
    for (const Stage other : model::kStages) {
      for (size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(account.At(other).cost[i].ns, other == stage && i == 2 ? 7000 * times : 0);
      }
    }
  }
}

TEST(AccountingTest, ASteadyCostOfLessThanATenthOfAStepIsNoRarity) {
  const Verdict verdict = Judge(Account(SlowJob(2, Stage::kForward, 4000, 20)));
  EXPECT_EQ(verdict.answer, Answer::kStraggler);
  EXPECT_EQ(verdict.step_count, 20);
  EXPECT_FALSE(verdict.is_occasional);
  EXPECT_EQ(verdict.confidence, 1);
}

TEST(AccountingTest, IncrementsAddUpToTheStepsAndWhatFollowsTheLastMeeting) {
  const std::vector<RankStages> ranks = SlowJob(1, Stage::kOptimizer, 9000, 20);
  const Accounting account = Account(ranks);
  int64_t steps_ns = 0;
  for (const StepStages& step : ranks[1].steps) steps_ns += step.duration_ns;
  EXPECT_EQ(account.total_ns + account.tail_ns, steps_ns);
  int64_t stages_ns = 0;
  for (const StageAccount& stage : account.stages) stages_ns += stage.frontier_ns;
  EXPECT_EQ(stages_ns, account.total_ns);
  int64_t by_step_ns = 0;
  for (const StepAccount& step : account.steps) by_step_ns += step.ns;
  EXPECT_EQ(by_step_ns, account.total_ns);
}

TEST(AccountingTest, TwoSlowRanksTogetherAreAnImbalanceOfTheirStage) {
  std::vector<RankStages> ranks = SlowJob(0, Stage::kForward, 6000, 10);
  for (StepStages& step : ranks[1].steps) {
    step.spans[1].duration_ns += 6000;
    step.spans[3].duration_ns -= 6000;
  }
  const Accounting account = Account(ranks);
  EXPECT_EQ(account.At(Stage::kForward).imbalance_ns, 60000);
  EXPECT_EQ(account.At(Stage::kForward).cost[0].ns, 0) << "without it the job would wait for rank 1";
}

TEST(AccountingTest, OneRankCostsNobodyAnything) {
  std::vector<RankStages> one = SlowJob(0, Stage::kInput, 500, 3);
  one.resize(1);
  const Accounting account = Account(one);
  EXPECT_EQ(account.At(Stage::kInput).frontier_ns, 4500);
  EXPECT_EQ(account.At(Stage::kInput).cost[0].ns, 0);
  EXPECT_TRUE(Account({}).steps.empty());
}

}  // namespace
}  // namespace lockstep::frontier
