#include "analysis/wait_pairs.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "analysis/stragglers.h"
#include "analysis/testing/collective_job.h"
#include "analysis/testing/made_collectives.h"

namespace lockstep::analysis {
namespace {

using testing::MadeCollective;

TEST(WaitPairsTest, EachVictimWaitsForTheLast) {
  Collectives collectives;
  collectives.instances = {MadeCollective({0, 10, 100}, 5), MadeCollective({200, 230, 210}, 5)};
  const std::vector<WaitPair> pairs = ComputeWaitPairs(collectives);
  ASSERT_EQ(pairs.size(), 4u);
  EXPECT_EQ(pairs[0].culprit_rank_index, 1u);
  EXPECT_EQ(pairs[0].victim_rank_index, 0u);
  EXPECT_EQ(pairs[0].wait_ns, 30);
  EXPECT_EQ(pairs[1].victim_rank_index, 2u);
  EXPECT_EQ(pairs[1].wait_ns, 20);
  EXPECT_EQ(pairs[2].culprit_rank_index, 2u);
  EXPECT_EQ(pairs[2].wait_ns, 100);
  EXPECT_EQ(pairs[3].wait_ns, 90);
  EXPECT_EQ(pairs[3].count, 1u);
}

TEST(WaitPairsTest, WaitingThatTwoCollectivesShareCountsOnce) {
  Collectives collectives;
  collectives.instances = {MadeCollective({0, 100}, 5), MadeCollective({50, 150}, 5)};
  const std::vector<WaitPair> pairs = ComputeWaitPairs(collectives);
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].wait_ns, 150);
  EXPECT_EQ(pairs[0].count, 2u);
}

TEST(WaitPairsTest, WhatTellsNothingIsLeftOut) {
  Collectives collectives;
  CollectiveInstance broadcast = MadeCollective({0, 100}, 5);
  broadcast.synchronising = false;
  CollectiveInstance untimed = MadeCollective({0, 100}, 5);
  for (CollectiveMember& member : untimed.members) member.wait_ns.reset();
  collectives.instances = {broadcast, untimed, MadeCollective({0, 0}, 5)};
  EXPECT_TRUE(ComputeWaitPairs(collectives).empty());
}

TEST(WaitPairsTest, ACulpritsPairsAddUpToTheWaitingItGave) {
  std::mt19937_64 random(7);
  testing::RunBuilder builder;
  Collectives collectives;
  for (int32_t rank = 0; rank < 5; ++rank) builder.Rank(rank).Op(1, "aten::mm", 0, 10);
  for (int64_t i = 0; i < 200; ++i) {
    std::vector<int64_t> arrivals_ns;
    for (int rank = 0; rank < 5; ++rank) arrivals_ns.push_back(i * 40 + static_cast<int64_t>(random() % 100));
    collectives.instances.push_back(MadeCollective(arrivals_ns, 3));
  }
  const testing::Job job(builder.Build());
  std::map<size_t, int64_t> given_ns;
  for (const WaitPair& pair : ComputeWaitPairs(collectives)) {
    EXPECT_GT(pair.wait_ns, 0);
    given_ns[pair.culprit_rank_index] += pair.wait_ns;
  }
  const Stragglers stragglers = ComputeStragglers(job.shared, collectives, {});
  ASSERT_EQ(stragglers.rows.size(), 5u);
  for (const StragglerRow& row : stragglers.rows) EXPECT_EQ(given_ns[row.rank_index], row.wait_given_ns);
}

}  // namespace
}  // namespace lockstep::analysis
