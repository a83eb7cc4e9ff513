#include "analysis/hang/size_rule.h"

#include <gtest/gtest.h>

#include "analysis/hang/job_for_test.h"

namespace lockstep::hang {
namespace {

/// Of rank 0's call in a group of four.
bool Breaks(const CallForTest& call) {
  JobForTest job(4);
  const uint32_t world = job.World();
  job.Call(0, world, call);
  const JobView view = job.View();
  return BreaksSizeRule(view, view.groups[0], 0, 1);
}

TEST(SizeRuleTest, AllGatherReturnsAllMembersShares) {
  EXPECT_FALSE(Breaks({.operation = "nccl:_all_gather_base", .inputs = {{8}}, .outputs = {{32}}}));
  EXPECT_TRUE(Breaks({.operation = "nccl:_all_gather_base", .inputs = {{8}}, .outputs = {{24}}}));
}

TEST(SizeRuleTest, AllGathersOutputMayBeAListOfTensors) {
  EXPECT_FALSE(Breaks({.operation = "nccl:all_gather", .inputs = {{8}}, .outputs = {{8}, {8}, {8}, {8}}}));
  EXPECT_TRUE(Breaks({.operation = "nccl:all_gather", .inputs = {{8}}, .outputs = {{8}, {8}, {8}}}));
}

TEST(SizeRuleTest, ReduceScatterReturnsOneMembersShare) {
  EXPECT_FALSE(Breaks({.operation = "nccl:_reduce_scatter_base", .inputs = {{32}}, .outputs = {{8}}}));
  EXPECT_TRUE(Breaks({.operation = "nccl:_reduce_scatter_base", .inputs = {{32}}, .outputs = {{16}}}));
}

TEST(SizeRuleTest, OtherCollectivesHaveNoSuchRule) {
  EXPECT_FALSE(Breaks({.operation = "nccl:all_to_all", .inputs = {{8}}, .outputs = {{11}}}));
  EXPECT_FALSE(Breaks({.operation = "nccl:all_reduce", .inputs = {{8}}, .outputs = {{11}}}));
}

TEST(SizeRuleTest, SizesThatAreNotRecordedBreakNone) {
  EXPECT_FALSE(Breaks({.operation = "nccl:_all_gather_base", .inputs = {}, .outputs = {{24}}}));
  EXPECT_FALSE(Breaks({.operation = "nccl:_all_gather_base", .inputs = {{8}}, .outputs = {}}));
}

TEST(SizeRuleTest, NobodyIsJudgedByGuessedMembers) {
  JobForTest job(4);
  const uint32_t world = job.World();
  job.Call(0, world, {.operation = "nccl:_all_gather_base", .inputs = {{8}}, .outputs = {{24}}});
  JobView view = job.View();
  view.groups[0].members_inferred = true;
  EXPECT_FALSE(BreaksSizeRule(view, view.groups[0], 0, 1));
}

TEST(SizeRuleTest, ACallThatIsNotThereBreaksNone) {
  JobForTest job(4);
  job.Call(0, job.World());
  const JobView view = job.View();
  EXPECT_FALSE(BreaksSizeRule(view, view.groups[0], 0, 2));
  EXPECT_FALSE(BreaksSizeRule(view, view.groups[0], 77, 1));
}

}  // namespace
}  // namespace lockstep::hang
