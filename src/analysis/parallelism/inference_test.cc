#include "analysis/parallelism/inference.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "analysis/testing/analysed_rank.h"

namespace lockstep::analysis {
namespace {

using testing::AnalysedRank;
using testing::kMs;
using testing::RankBuilder;
using testing::RunBuilder;

constexpr int64_t kThread = 1;

InferencePartial MapOf(RunBuilder& builder, AnalysisOptions options = {}) {
  const AnalysedRank rank(builder, std::move(options));
  return MapInference(rank.context);
}

/// A kernel of [start, end) that the thread launches at `launch_ns`.
void Launch(RankBuilder& rank, int64_t launch_ns, int64_t start_ns, int64_t end_ns, uint32_t correlation,
            int64_t thread = kThread) {
  rank.Runtime(thread, "cudaLaunchKernel", launch_ns, 1000, correlation);
  rank.Kernel(7, "gemm", start_ns, end_ns - start_ns, correlation);
}

TEST(InferenceTest, NothingMarkedIsNothingClaimed) {
  RunBuilder builder;
  builder.Rank(0).Op(kThread, "aten::mm", 0, kMs).Annotation(kThread, "ProfilerStep#1", 0, kMs);
  builder.Rank(0).Python(kThread, "flashinfer/prefill.py(3330): run", 0, kMs);
  builder.Rank(0).Op(kThread, "prefill", 0, kMs);  // an operator is no annotation
  const InferencePartial inference = MapOf(builder);
  EXPECT_TRUE(inference.rows.empty());
  EXPECT_FALSE(inference.requests);
}

TEST(InferenceTest, PhasesHaveTokensAndQuantiles) {
  RunBuilder builder;
  RankBuilder& rank = builder.Rank(0);
  rank.Annotation(kThread, "execute_context_2(3000)_generation_0(0)", 0, 10 * kMs);
  for (int64_t i = 1; i <= 5; ++i) {
    rank.Annotation(kThread, "execute_context_0(0)_generation_2(2)", (10 + 10 * i) * kMs, i * kMs);
  }
  const InferencePartial inference = MapOf(builder);
  ASSERT_EQ(inference.rows.size(), 2u);
  const InferenceRow& prefill = inference.rows[0];
  EXPECT_EQ(prefill.phase, InferencePhase::kPrefill);
  EXPECT_EQ(prefill.engine, InferenceEngine::kVllm);
  EXPECT_EQ(prefill.phase_count, 1u);
  EXPECT_EQ(prefill.total_ns, 10 * kMs);
  EXPECT_EQ(prefill.token_count, 3000);
  EXPECT_DOUBLE_EQ(*prefill.tokens_per_s, 300'000);
  EXPECT_FALSE(prefill.busy_ns);  // no device events
  EXPECT_FALSE(prefill.busy_ratio);
  const InferenceRow& decode = inference.rows[1];
  EXPECT_EQ(decode.phase_count, 5u);
  EXPECT_EQ(decode.total_ns, 15 * kMs);
  EXPECT_EQ(decode.duration.median_ns, 3 * kMs);
  EXPECT_EQ(decode.duration.p95_ns, 4 * kMs + kMs * 8 / 10);  // position 0.95 x 4 = 3.8 of 1, 2, 3, 4, 5 ms
  EXPECT_EQ(decode.duration.p99_ns, 4 * kMs + kMs * 96 / 100);
  EXPECT_EQ(decode.mean_request_count, 2);
  EXPECT_EQ(decode.token_count, 10);
  EXPECT_FALSE(inference.requests);
}

TEST(InferenceTest, APhaseLastsUntilWhatItLaunchedIsDone) {
  RunBuilder builder;
  RankBuilder& rank = builder.Rank(0);
  // The host runs ahead: each range is 1 ms, each step takes the device 4 ms.
  for (int64_t i = 0; i < 3; ++i) {
    rank.Annotation(kThread, "step[DECODE bs=8]", 2 * i * kMs, kMs);
    Launch(rank, 2 * i * kMs + 1000, (1 + 4 * i) * kMs, (5 + 4 * i) * kMs, static_cast<uint32_t>(i + 1));
  }
  const InferencePartial inference = MapOf(builder, {});
  // Prefill beside it is not needed: the name is SGLang's own.
  ASSERT_EQ(inference.rows.size(), 1u);
  const InferenceRow& row = inference.rows[0];
  EXPECT_EQ(row.phase_count, 3u);
  EXPECT_EQ(row.total_ns, 13 * kMs);  // 0..5, 5..9, 9..13: nothing counts twice
  EXPECT_EQ(row.duration.median_ns, 4 * kMs);
  EXPECT_EQ(row.busy_ns, 12 * kMs);
  EXPECT_DOUBLE_EQ(*row.busy_ratio, 12.0 / 13);
  EXPECT_EQ(row.token_count, 24);
}

TEST(InferenceTest, WorkOfOtherThreadsAndOfNoRangeIsNotThePhases) {
  RunBuilder builder;
  RankBuilder& rank = builder.Rank(0);
  rank.Annotation(kThread, "prefill", 0, 10 * kMs);
  Launch(rank, 1 * kMs, 2 * kMs, 4 * kMs, 1);
  Launch(rank, 2 * kMs, 20 * kMs, 30 * kMs, 2, kThread + 1);
  Launch(rank, 11 * kMs, 40 * kMs, 50 * kMs, 3);
  const InferencePartial inference = MapOf(builder);
  ASSERT_EQ(inference.rows.size(), 1u);
  EXPECT_EQ(inference.rows[0].total_ns, 10 * kMs);
  EXPECT_EQ(inference.rows[0].busy_ns, 2 * kMs);
}

TEST(InferenceTest, OneCountThatIsNotInANameLeavesTheSumUnknown) {
  RunBuilder builder;
  builder.Rank(0)
      .Annotation(kThread, "prefill[bs=2 tok=100]", 0, kMs)
      .Annotation(kThread, "prefill[bs=2]", 2 * kMs, kMs);
  const InferencePartial inference = MapOf(builder);
  ASSERT_EQ(inference.rows.size(), 1u);
  EXPECT_EQ(inference.rows[0].mean_request_count, 2);
  EXPECT_FALSE(inference.rows[0].token_count);
  EXPECT_FALSE(inference.rows[0].tokens_per_s);
}

TEST(InferenceTest, APlainDecodeAloneMayBeOfAnything) {
  RunBuilder alone;
  alone.Rank(0).Annotation(kThread, "decode", 0, kMs);
  EXPECT_TRUE(MapOf(alone).rows.empty());
  RunBuilder beside;
  beside.Rank(0).Annotation(kThread, "prefill", 0, kMs).Annotation(kThread, "decode", 2 * kMs, kMs);
  EXPECT_EQ(MapOf(beside).rows.size(), 2u);
}

TEST(InferenceTest, InnerRangesAreOfTheOuterOne) {
  RunBuilder builder;
  builder.Rank(0).Annotation(kThread, "prefill", 0, 10 * kMs).Annotation(kThread, "prefill chunk 1", kMs, kMs);
  const InferencePartial inference = MapOf(builder);
  ASSERT_EQ(inference.rows.size(), 1u);
  EXPECT_EQ(inference.rows[0].phase_count, 1u);
}

TEST(InferenceTest, TokensOfAGuessingModelAreNotCounted) {
  RunBuilder builder;
  builder.Rank(0)
      .Annotation(kThread, "step[EXTEND bs=1 toks=50]", 0, kMs)
      .Annotation(kThread, "step[DECODE bs=4]", 2 * kMs, kMs)
      .Annotation(kThread, "step[TARGET_VERIFY bs=4]", 4 * kMs, kMs);
  const InferencePartial inference = MapOf(builder);
  ASSERT_EQ(inference.rows.size(), 2u);
  EXPECT_EQ(inference.rows[0].token_count, 50);
  EXPECT_EQ(inference.rows[1].phase_count, 2u);
  EXPECT_FALSE(inference.rows[1].token_count);
}

TEST(InferenceTest, TheFirstTokenIsThereWhenThePrefillIsDone) {
  RunBuilder builder;
  RankBuilder& rank = builder.Rank(0);
  rank.Annotation(kThread, "request 1", 0, 20 * kMs);
  rank.Annotation(kThread, "prefill", kMs, 2 * kMs);
  rank.Annotation(kThread, "prefill", 4 * kMs, 2 * kMs);  // the prompt's second half
  Launch(rank, 5 * kMs, 6 * kMs, 7 * kMs, 1);
  rank.Annotation(kThread, "decode", 8 * kMs, 11 * kMs);
  rank.Annotation(kThread, "prefill", 19 * kMs + 1, 1000);
  rank.Annotation(kThread, "request 2", 30 * kMs, 10 * kMs);  // its phases are not marked
  Launch(rank, 39 * kMs, 39 * kMs, 42 * kMs, 2);
  const InferencePartial inference = MapOf(builder);
  ASSERT_TRUE(inference.requests);
  EXPECT_EQ(inference.requests->request_count, 2u);
  EXPECT_EQ(inference.requests->latency.median_ns, 16 * kMs);  // 20 and 12 ms
  EXPECT_EQ(inference.requests->first_token_count, 1u);
  ASSERT_TRUE(inference.requests->first_token);
  EXPECT_EQ(inference.requests->first_token->median_ns, 7 * kMs);
  EXPECT_EQ(inference.rows.size(), 2u);
}

TEST(InferenceTest, AbsurdTimesAreLeftOut) {
  RunBuilder builder;
  RankBuilder& rank = builder.Rank(0);
  rank.Annotation(kThread, "prefill", 0, INT64_MAX);
  rank.Annotation(kThread + 1, "prefill", 0, kMs);
  rank.Runtime(kThread + 1, "cudaLaunchKernel", 1000, 1000, 1).Kernel(7, "gemm", 5'000'000'000'000'000'000, 1000, 1);
  const InferencePartial inference = MapOf(builder);
  ASSERT_EQ(inference.rows.size(), 1u);
  EXPECT_EQ(inference.rows[0].total_ns, kMs);
}

}  // namespace
}  // namespace lockstep::analysis
