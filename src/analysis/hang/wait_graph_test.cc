#include "analysis/hang/wait_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/hang/job_for_test.h"

namespace lockstep::hang {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class WaitGraphTest : public ::testing::Test {
 protected:
  WaitGraph Graph() {
    view_ = job_.View();
    return MakeWaitGraph(view_, ReadConditions(view_));
  }
  JobForTest job_{4};
  JobView view_;
};

TEST_F(WaitGraphTest, WhoHasNotComeIsAwaitedByAllOthers) {
  const uint32_t world = job_.World();
  job_.CallAll(world);
  job_.CallAllBut({2}, world, kOpen);
  const WaitGraph graph = Graph();
  EXPECT_THAT(graph.roots, ElementsAre(2));
  EXPECT_EQ(graph.awaited_by[2], 3U);
  ASSERT_THAT(graph.waits, SizeIs(3));
  EXPECT_EQ(graph.waits[0].sequence, 2);
  EXPECT_THAT(graph.waits[0].waits_for, ElementsAre(2));
  EXPECT_THAT(graph.HeldUpBy({2}), ElementsAre(0, 1, 3));
}

TEST_F(WaitGraphTest, OnlyTheOldestOpenCallOfAGroupHoldsARankUp) {
  const uint32_t world = job_.World();
  job_.CallAll(world);
  job_.CallAllBut({2}, world, kOpen);
  job_.CallAllBut({2}, world, kOpen);
  const WaitGraph graph = Graph();
  ASSERT_THAT(graph.of_rank[0], SizeIs(1));
  EXPECT_EQ(graph.waits[graph.of_rank[0][0]].sequence, 2);
}

TEST_F(WaitGraphTest, AnOperationThatAllCameToIsInFlight) {
  const uint32_t world = job_.World();
  job_.CallAllBut({3}, world);
  job_.Call(3, world, kOpen);
  const WaitGraph graph = Graph();
  EXPECT_THAT(graph.waits, IsEmpty());
  ASSERT_THAT(graph.flights, SizeIs(1));
  EXPECT_THAT(graph.flights[0].open_on, ElementsAre(3));
  EXPECT_TRUE(graph.flights[0].completed_somewhere);
}

TEST_F(WaitGraphTest, ARankWithoutARecordIsAwaitedPerhaps) {
  const uint32_t world = job_.World();
  job_.CallAllBut({1}, world, kOpen);
  job_.LoseRecord(1);
  const WaitGraph graph = Graph();
  EXPECT_EQ(graph.awaited_by[1], 0U);
  EXPECT_EQ(graph.perhaps_awaited_by[1], 3U);
  EXPECT_THAT(graph.roots, IsEmpty());
}

TEST_F(WaitGraphTest, ADeadRankWithoutARecordIsAwaitedForSure) {
  const uint32_t world = job_.World();
  job_.CallAllBut({1}, world, kOpen);
  job_.LoseRecord(1);
  job_.Rank(1).liveness = evidence::Liveness::kGone;
  EXPECT_EQ(Graph().awaited_by[1], 3U);
}

TEST_F(WaitGraphTest, ABroadcastThatIsDoneAwaitsNobody) {
  const uint32_t world = job_.World();
  job_.Call(0, world, {.operation = "gloo:broadcast"});
  EXPECT_THAT(Graph().waits, IsEmpty()) << "the root may be done before anybody comes";
}

TEST_F(WaitGraphTest, AnAllReduceThatIsCalledDoneBeforeAllCameHasFailed) {
  const uint32_t world = job_.World();
  job_.CallAll(world);
  job_.CallAllBut({1}, world);
  const WaitGraph graph = Graph();
  ASSERT_THAT(graph.waits, SizeIs(3));
  EXPECT_TRUE(graph.waits[0].failed);
  EXPECT_THAT(graph.waits[0].waits_for, ElementsAre(1));
}

TEST_F(WaitGraphTest, AWrappedRingDoesNotTellThatARankHasNeverBeenInAGroup) {
  job_.WrapRings(5000);
  const uint32_t world = job_.World();
  const uint32_t pair = job_.Group("1", "pair", {0, 1});
  job_.CallAll(world, {.sequence = 900});
  job_.Call(0, pair, {.done = false, .sequence = 70});
  const WaitGraph graph = Graph();
  ASSERT_THAT(graph.waits, SizeIs(1));
  EXPECT_THAT(graph.waits[0].waits_for, IsEmpty());
  EXPECT_THAT(graph.waits[0].perhaps_waits, ElementsAre(1)) << "its calls of the pair may be overwritten";
}

TEST_F(WaitGraphTest, StatusTellsWhatAWrappedRingLost) {
  job_.WrapRings(5000);
  const uint32_t world = job_.World();
  const uint32_t pair = job_.Group("1", "pair", {0, 1});
  job_.CallAll(world, {.operation = "nccl:all_reduce", .sequence = 900});
  job_.Call(0, pair, {.operation = "nccl:all_reduce", .done = false, .sequence = 70});
  job_.Record(1).library_version = "2.27.3";
  job_.GroupOf(1, pair).last_enqueued = 69;
  const WaitGraph graph = Graph();
  ASSERT_THAT(graph.waits, SizeIs(1));
  EXPECT_THAT(graph.waits[0].waits_for, ElementsAre(1));
}

TEST_F(WaitGraphTest, RanksThatAwaitOneAnotherAreACycle) {
  const uint32_t left = job_.Group("1", "left", {0, 1});
  const uint32_t right = job_.Group("2", "right", {0, 1});
  job_.CallAll(left);
  job_.CallAll(right);
  job_.Call(0, left, kOpen);
  job_.Call(1, right, kOpen);
  const WaitGraph graph = Graph();
  EXPECT_THAT(graph.cycles, ElementsAre(ElementsAre(0, 1)));
  EXPECT_THAT(graph.roots, IsEmpty());
}

TEST_F(WaitGraphTest, RanksOfACircleThatAlsoAwaitAnotherAreNoCycle) {
  const uint32_t world = job_.World();
  const uint32_t left = job_.Group("1", "left", {0, 1});
  const uint32_t right = job_.Group("2", "right", {0, 1});
  for (const uint32_t group : {world, left, right}) job_.CallAll(group);
  job_.Call(0, left, kOpen);
  job_.Call(1, right, kOpen);
  job_.Call(0, world, kOpen);
  job_.Call(1, world, kOpen);
  const WaitGraph graph = Graph();
  EXPECT_THAT(graph.cycles, IsEmpty()) << "they wait for 2 and 3, which would let them go";
  EXPECT_THAT(graph.roots, ElementsAre(2, 3));
}

TEST_F(WaitGraphTest, AChainOfWaitsIsHeldUpByItsEnd) {
  const uint32_t first = job_.Group("1", "first", {0, 1});
  const uint32_t second = job_.Group("2", "second", {1, 2});
  const uint32_t third = job_.Group("3", "third", {2, 3});
  for (const uint32_t group : {first, second, third}) job_.CallAll(group);
  job_.Call(0, first, kOpen);
  job_.Call(1, second, kOpen);
  job_.Call(2, third, kOpen);
  const WaitGraph graph = Graph();
  EXPECT_THAT(graph.roots, ElementsAre(3));
  EXPECT_THAT(graph.HeldUpBy({3}), ElementsAre(0, 1, 2));
  EXPECT_THAT(graph.HeldUpBy({1}), ElementsAre(0));
}

TEST_F(WaitGraphTest, SendsMeetReceivesInTheOrderOfIssue) {
  const uint32_t world = job_.World();
  job_.Call(0, world, {.operation = "nccl:send 0->1", .is_p2p = true});
  job_.Call(0, world, {.operation = "nccl:send 0->1", .done = false, .is_p2p = true});
  job_.Call(1, world, {.operation = "nccl:recv 1<-0", .is_p2p = true});
  const WaitGraph graph = Graph();
  ASSERT_THAT(graph.waits, SizeIs(1));
  EXPECT_TRUE(graph.waits[0].is_send);
  EXPECT_EQ(graph.waits[0].entry, 1U);
  EXPECT_THAT(graph.waits[0].waits_for, ElementsAre(1));
}

TEST_F(WaitGraphTest, SendsThatBothSidesHaveOpenAreOnTheirWay) {
  const uint32_t world = job_.World();
  job_.Call(0, world, {.operation = "nccl:send 0->1", .done = false, .is_p2p = true});
  job_.Call(1, world, {.operation = "nccl:recv 1<-0", .done = false, .is_p2p = true});
  EXPECT_THAT(Graph().waits, IsEmpty());
}

}  // namespace
}  // namespace lockstep::hang
