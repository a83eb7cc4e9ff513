#include "analysis/frontier/groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "analysis/frontier/job_stages.h"

namespace lockstep::frontier {
namespace {

using model::RankStages;
using model::Stage;
using model::StageSpan;
using model::StepStages;
using model::WaitedFor;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kSteps = 10;

void AddStep(std::vector<StageSpan> spans, RankStages* rank) {
  StepStages step{.number = static_cast<int64_t>(rank->steps.size()), .spans = std::move(spans)};
  for (const StageSpan& span : step.spans) step.duration_ns += span.duration_ns;
  rank->steps.push_back(std::move(step));
}

JobStages Assess(std::vector<RankStages> ranks) { return AssessJob(std::move(ranks), {}); }

/// Two by two: ranks 0 and 1, 2 and 3 add up tensors in forward, 0 and 2, 1 and 3 gradients. Rank `slow` takes
/// `extra_ns` longer in forward: its neighbour waits there, the other two at the end.
std::vector<RankStages> Mesh(int32_t slow, int64_t extra_ns) {
  std::vector<RankStages> ranks(4);
  for (int32_t number = 0; number < 4; ++number) {
    RankStages& rank = ranks[static_cast<size_t>(number)];
    rank.rank = number;
    const bool names_data_first = number % 2 == 0;  // Numbers of groups are each rank's own.
    const std::string data = number % 2 == 0 ? "dp[0,2]" : "dp[1,3]";
    const std::string tensor = number < 2 ? "tp[0,1]" : "tp[2,3]";
    rank.groups = {names_data_first ? data : tensor, names_data_first ? tensor : data};
    const WaitedFor for_data{.group = static_cast<uint16_t>(names_data_first ? 1 : 2)};
    const WaitedFor for_tensor{.group = static_cast<uint16_t>(names_data_first ? 2 : 1)};
    const bool is_beside = number != slow && number / 2 == slow / 2;
    const bool is_slow = number == slow;
    for (int64_t i = 0; i < kSteps; ++i) {
      AddStep({{Stage::kForward, 20'000'000 + (is_slow ? extra_ns : 0)},
               {Stage::kCommunication, 1'000'000 + (is_beside ? extra_ns : 0), for_tensor},
               {Stage::kBackward, 40'000'000},
               {Stage::kCommunication, 1'000'000 + (is_slow || is_beside ? 0 : extra_ns), for_data},
               {Stage::kOptimizer, 3'000'000}},
              &rank);
    }
  }
  return ranks;
}

TEST(GroupsTest, ARankThatItsGroupsAwaitIsNamedThoughAllRanksNeverMeet) {
  const JobStages job = Assess(Mesh(2, 15'000'000));
  EXPECT_EQ(job.verdict.answer, Answer::kStraggler);
  EXPECT_EQ(job.verdict.rank_idx, 2U);
  EXPECT_EQ(job.verdict.stage, Stage::kForward);
  EXPECT_EQ(job.verdict.cost_ns, kSteps * 15'000'000);
  ASSERT_THAT(job.groups, SizeIs(4));
  EXPECT_THAT(job.groups[0].account.ranks, ElementsAre(0, 2));
  EXPECT_EQ(job.groups[0].name, "dp");
  EXPECT_THAT(job.groups[0].wait_ns, ElementsAre(kSteps * 16'000'000, kSteps * 1'000'000));
  EXPECT_EQ(job.groups[1].name, "tp");
  // Rank 3 is as late as rank 2, but has only waited.
  EXPECT_EQ(job.groups[2].name, "dp");
  EXPECT_THAT(job.groups[2].account.ranks, ElementsAre(1, 3));
  EXPECT_EQ(FindMostCost(job.groups[2].account).ns, 0);
  ASSERT_TRUE(job.group_idx);
  EXPECT_THAT(job.groups[*job.group_idx].members, ::testing::Contains(2U));
  EXPECT_EQ(job.account.unmet_ns, 0);
  int64_t sum_ns = 0;
  for (const StageAccount& stage : job.account.stages) sum_ns += stage.frontier_ns;
  EXPECT_EQ(sum_ns, job.account.total_ns);
  EXPECT_EQ(job.account.total_ns, kSteps * 80'000'000) << "rank 0 and 1 take no longer than the others";
  for (const Window& window : job.over_time.windows) EXPECT_EQ(window.rank_idx, 2U);
}

TEST(GroupsTest, EvenRanksAreEven) {
  const JobStages job = Assess(Mesh(0, 0));
  EXPECT_EQ(job.verdict.answer, Answer::kEven);
  EXPECT_FALSE(job.group_idx);
}

TEST(GroupsTest, WhatAllRanksAwaitIsTheWholeJobs) {
  std::vector<RankStages> ranks = Mesh(1, 9'000'000);
  for (RankStages& rank : ranks) {
    for (StepStages& step : rank.steps) {
      for (StageSpan& span : step.spans) span.waited_for = {};
    }
  }
  const JobStages job = Assess(std::move(ranks));
  EXPECT_THAT(job.groups, IsEmpty());
  EXPECT_EQ(job.verdict.rank_idx, 1U);
  EXPECT_FALSE(job.group_idx);
}

TEST(GroupsTest, TheStagesOfAPipelineNeverMeetButNoneIsAStepAhead) {
  for (const uint16_t group : {uint16_t{0}, uint16_t{1}}) {
    std::vector<RankStages> ranks(3);
    for (size_t i = 0; i < ranks.size(); ++i) {
      ranks[i].rank = static_cast<int32_t>(i);
      ranks[i].groups = {"pp[0-2]"};
      const int64_t extra_ns = i == 1 ? 8'000'000 : 0;
      for (int64_t number = 0; number < kSteps; ++number) {
        AddStep({{Stage::kForward, 20'000'000 + extra_ns},
                 {Stage::kCommunication, 48'000'000 - extra_ns, WaitedFor{group, true}},
                 {Stage::kBackward, 20'000'000}},
                &ranks[i]);
      }
    }
    const JobStages job = Assess(std::move(ranks));
    EXPECT_TRUE(job.is_pipeline);
    EXPECT_EQ(job.verdict.answer, Answer::kStraggler);
    EXPECT_EQ(job.verdict.rank_idx, 1U);
    EXPECT_EQ(job.verdict.stage, Stage::kForward);
    EXPECT_EQ(job.verdict.cost_ns, kSteps * 8'000'000);
    ASSERT_THAT(job.groups, SizeIs(group));
    for (const Group& each : job.groups) EXPECT_TRUE(each.is_pairwise);
  }
}

TEST(GroupsTest, AWaitForAGroupWithoutANameIsNoMeeting) {
  std::vector<RankStages> ranks(2);
  for (size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].rank = static_cast<int32_t>(i);
    AddStep({{Stage::kForward, 5}, {Stage::kCommunication, 5, WaitedFor{7}}}, &ranks[i]);
  }
  EXPECT_THAT(NumberGroups(&ranks), IsEmpty());
  for (const RankStages& rank : ranks) {
    EXPECT_EQ(rank.steps[0].spans[1].waited_for.group, 0);
    EXPECT_TRUE(rank.steps[0].spans[1].waited_for.is_pairwise);
  }
}

TEST(GroupsTest, OneMemberAloneIsNoGroup) {
  std::vector<RankStages> ranks = Mesh(2, 15'000'000);
  ranks.pop_back();
  EXPECT_THAT(Assess(std::move(ranks)).groups, SizeIs(2));
}

}  // namespace
}  // namespace lockstep::frontier
