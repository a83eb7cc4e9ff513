#include "analysis/parallelism/moe.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analysis/testing/collective_job.h"

namespace lockstep::analysis {
namespace {

using testing::Job;
using testing::kMs;
using testing::PlannedCall;
using testing::RunBuilder;

constexpr int64_t kElementBytes = 4;  // PlannedCall's type is Float

/// What each rank puts into an all_to_all and gets out of it, in elements.
struct Exchange {
  std::vector<int64_t> in;
  std::vector<int64_t> out;
};

PlannedCall CallOf(const Exchange& exchange, size_t rank, int64_t sequence) {
  std::string members;
  for (size_t i = 0; i < exchange.in.size(); ++i) members += (i > 0 ? ", " : "[") + std::to_string(i);
  return {.rank = static_cast<int32_t>(rank),
          .start_ns = sequence * kMs,
          .end_ns = sequence * kMs + 1000,
          .name = "all_to_allv",
          .elements = exchange.in[rank],
          .group = "7",
          .group_ranks = members + "]",
          .sequence = sequence,
          .out_elements = exchange.out[rank]};
}

Moe MoeOf(const Job& job) {
  std::vector<RankTraffic> traffic;
  for (size_t i = 0; i < job.run.ranks.size(); ++i) traffic.push_back(MapTraffic(MakeRankContext(job.shared, i)));
  return FinishMoe(job.run, traffic, FinishGroups(job.run, traffic).rows, job.Match());
}

/// Ranks 0, 1, ... exchange as planned, one after the other.
RunBuilder Plan(const std::vector<Exchange>& exchanges) {
  RunBuilder builder;
  for (size_t k = 0; k < exchanges.size(); ++k) {
    for (size_t rank = 0; rank < exchanges[k].in.size(); ++rank) {
      AddCall(builder, CallOf(exchanges[k], rank, static_cast<int64_t>(k)));
    }
  }
  return builder;
}

Moe MoeOf(const std::vector<Exchange>& exchanges) {
  RunBuilder builder = Plan(exchanges);
  return MoeOf(Job(builder.Build()));
}

const Exchange kDispatch = {{100, 100, 100}, {60, 60, 180}};  // experts of rank 2 get 180 of 300
const Exchange kCombine = {{60, 60, 180}, {100, 100, 100}};   // and send as many back

TEST(MoeTest, TokensToExpertsAndBackAreOneLoad) {
  const Moe moe = MoeOf({kDispatch, kCombine, kDispatch, kCombine});
  ASSERT_EQ(moe.groups.size(), 1u);
  const MoeRow& group = moe.groups[0];
  EXPECT_EQ(group.rank_count, 3u);
  EXPECT_EQ(group.call_count, 12u);
  EXPECT_EQ(group.exchange_count, 4u);
  EXPECT_DOUBLE_EQ(*group.load_ratio, 1.8);
  EXPECT_DOUBLE_EQ(*group.exchange_load_ratio, 1.8);
  EXPECT_EQ(group.hottest_rank_index, 2u);
  EXPECT_EQ(group.pattern, LoadPattern::kChronic);
  EXPECT_EQ(group.duration_ns, 12 * 1000);
  EXPECT_EQ(group.exposed_ns, 12 * 1000);
  ASSERT_EQ(moe.ranks.size(), 3u);
  EXPECT_DOUBLE_EQ(*moe.ranks[0].load_ratio, 0.6);
  EXPECT_DOUBLE_EQ(*moe.ranks[2].load_ratio, 1.8);
  EXPECT_DOUBLE_EQ(*moe.ranks[2].load_variation, 0);
  EXPECT_EQ(moe.ranks[2].sent_bytes, kElementBytes * 2 * (100 + 180));
  EXPECT_EQ(moe.ranks[2].received_bytes, kElementBytes * 2 * (180 + 100));
}

TEST(MoeTest, AHotRankThatChangesIsVarying) {
  const Moe moe =
      MoeOf({{{100, 100, 100}, {180, 60, 60}}, {{100, 100, 100}, {60, 180, 60}}, {{100, 100, 100}, {60, 60, 180}}});
  EXPECT_DOUBLE_EQ(*moe.groups[0].load_ratio, 1);
  EXPECT_DOUBLE_EQ(*moe.groups[0].exchange_load_ratio, 1.8);
  EXPECT_FALSE(moe.groups[0].hottest_rank_index);
  EXPECT_EQ(moe.groups[0].pattern, LoadPattern::kVarying);
  // 1.8, 0.6, 0.6 about a mean of 1: variance (0.64 + 0.16 + 0.16) / 3 = 0.32.
  EXPECT_NEAR(*moe.ranks[0].load_variation * *moe.ranks[0].load_variation, 0.32, 1e-12);
}

TEST(MoeTest, BelowTheThresholdIsEven) {
  const Moe below = MoeOf({{{100, 100}, {124, 76}}});
  EXPECT_EQ(below.groups[0].pattern, LoadPattern::kEven);
  EXPECT_DOUBLE_EQ(*below.groups[0].load_ratio, 1.24);
  const Exchange above = {{100, 100}, {126, 74}};
  EXPECT_EQ(MoeOf({above, above}).groups[0].pattern, LoadPattern::kChronic);
}

TEST(MoeTest, OneUnevenExchangeTellsNothingOfTheOthers) {
  const Exchange even = {{100, 100, 100}, {100, 100, 100}};
  EXPECT_EQ(MoeOf({kDispatch}).groups[0].pattern, LoadPattern::kOnce);
  EXPECT_EQ(MoeOf({even, kDispatch, even}).groups[0].pattern, LoadPattern::kOnce);  // (3 + 0.8) / 3 = 1.27
  EXPECT_EQ(MoeOf({even, kDispatch, even}).groups[0].hottest_rank_index, 2u);
  EXPECT_EQ(MoeOf({even, kDispatch, even, even}).groups[0].pattern, LoadPattern::kEven);  // 4.8 / 4 = 1.2
}

TEST(MoeTest, CountsSentAheadWeighNextToNothing) {
  const Exchange counts = {{3, 3, 3}, {3, 3, 3}};
  const Moe moe = MoeOf({counts, kDispatch, kCombine});
  EXPECT_EQ(moe.groups[0].exchange_count, 3u);
  // (3 + 2 x 180) / (3 + 2 x 100), where a plain mean over exchanges would give (1 + 1.8 + 1.8) / 3 = 1.53.
  EXPECT_DOUBLE_EQ(*moe.groups[0].load_ratio, 363.0 / 203);
  EXPECT_LT(*moe.ranks[2].load_variation, 0.06);
}

TEST(MoeTest, WhatOneRankDoesNotRecordLeavesTheLoadUnknown) {
  RunBuilder builder = Plan({kDispatch});
  model::Run run = builder.Build();
  run.ranks[1].collectives[0].out_elements.reset();
  const Moe moe = MoeOf(Job(std::move(run)));
  ASSERT_EQ(moe.groups.size(), 1u);
  EXPECT_EQ(moe.groups[0].exchange_count, 0u);
  EXPECT_FALSE(moe.groups[0].load_ratio);
  EXPECT_EQ(moe.groups[0].pattern, LoadPattern::kUnknown);
  EXPECT_EQ(moe.ranks[0].received_bytes, kElementBytes * 60);
  EXPECT_EQ(moe.ranks[1].sent_bytes, kElementBytes * 100);
  EXPECT_FALSE(moe.ranks[1].received_bytes);
  EXPECT_FALSE(moe.ranks[1].load_ratio);
}

TEST(MoeTest, OneRankHasNoMeanToBeComparedWith) {
  RunBuilder builder;
  AddCall(builder, CallOf(kDispatch, 2, 0));
  const Moe moe = MoeOf(Job(builder.Build()));
  ASSERT_EQ(moe.groups.size(), 1u);
  EXPECT_EQ(moe.groups[0].pattern, LoadPattern::kUnknown);
  EXPECT_EQ(moe.ranks[0].received_bytes, kElementBytes * 180);
}

TEST(MoeTest, AnExchangeThatARanksTraceLacksIsNotCounted) {
  RunBuilder builder;
  for (size_t rank = 0; rank < 3; ++rank) {
    if (rank != 1) AddCall(builder, CallOf({{900, 900, 900}, {900, 0, 1800}}, rank, 0));
    AddCall(builder, CallOf({{100, 100, 100}, {90, 90, 120}}, rank, 1));
  }
  const Moe moe = MoeOf(Job(builder.Build()));
  EXPECT_EQ(moe.groups[0].call_count, 5u);
  EXPECT_EQ(moe.groups[0].exchange_count, 1u);
  EXPECT_DOUBLE_EQ(*moe.groups[0].load_ratio, 1.2);
}

TEST(MoeTest, OtherOperationsAreNoExchanges) {
  RunBuilder builder;
  for (int32_t rank = 0; rank < 2; ++rank) {
    AddCall(builder, {.rank = rank, .start_ns = 0, .end_ns = 1000, .group = "0", .group_ranks = "[0, 1]"});
  }
  const Moe moe = MoeOf(Job(builder.Build()));
  EXPECT_TRUE(moe.groups.empty());
  EXPECT_TRUE(moe.ranks.empty());
}

}  // namespace
}  // namespace lockstep::analysis
