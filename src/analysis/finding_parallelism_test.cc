// Findings about how a job is divided, from hand-made runs through the passes: raised, and not raised near it.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/analyze.h"
#include "analysis/finding.h"
#include "analysis/testing/collective_job.h"

namespace lockstep::analysis {
namespace {

using testing::kMs;
using testing::PlannedCall;
using testing::RankBuilder;
using testing::RunBuilder;

constexpr int64_t kElementBytes = 4;  // PlannedCall's type is Float

std::optional<Finding> FindIn(RunBuilder& builder, std::string_view id, const std::vector<std::string>& passes) {
  model::Run run = builder.Build();
  const Result<AnalysisResult> result = Analyze(&run, {}, passes);
  EXPECT_TRUE(result) << result.error().ToString();
  for (const Finding& finding : result->findings) {
    if (finding.id == id) return finding;
  }
  return std::nullopt;
}

double EvidenceValue(const Finding& finding, std::string_view name) {
  for (const Evidence& evidence : finding.evidence) {
    if (evidence.name == name) return evidence.value;
  }
  ADD_FAILURE() << finding.id << " has no evidence " << name;
  return 0;
}

/// A call of both ranks that the CPU's thread `thread` issues at `issue_ns`.
void Issue(RunBuilder& builder, int64_t thread, int64_t issue_ns, uint32_t correlation, PlannedCall call) {
  call.group = "0";
  call.group_ranks = "[0, 1]";
  for (call.rank = 0; call.rank < 2; ++call.rank) {
    RankBuilder& rank = builder.Rank(call.rank);
    rank.Runtime(thread, "cudaLaunchKernelExC", issue_ns, 1000, correlation);
    AddCall(builder, call, correlation);
  }
}

/// Two ranks, a step of 100 ms: forward 0..20 ms, backward 20..80 ms on CPU and device, the optimizer from 90 ms to the
/// end, and what `Issue` adds.
constexpr int64_t kStepNs = 100 * kMs;
constexpr int64_t kBackwardNs = 20 * kMs;
constexpr int64_t kBackwardEndNs = 80 * kMs;
constexpr int64_t kOptimizerNs = 90 * kMs;

void AddStep(RunBuilder& builder) {
  for (int32_t number = 0; number < 2; ++number) {
    RankBuilder& rank = builder.Rank(number);
    rank.Annotation(1, "ProfilerStep#3", 0, kStepNs);
    rank.Op(1, "aten::mm", 0, kBackwardNs);
    rank.Runtime(1, "cudaLaunchKernel", 1000, 1000, 1).Kernel(7, "gemm", 0, kBackwardNs, 1);
    rank.Op(2, "autograd::engine::evaluate_function: MmBackward0", kBackwardNs, kBackwardEndNs - kBackwardNs);
    rank.Runtime(2, "cudaLaunchKernel", kBackwardNs + 1000, 1000, 2);
    rank.Kernel(7, "gemm", kBackwardNs, kBackwardEndNs - kBackwardNs, 2);
    rank.Runtime(1, "cudaLaunchKernel", kOptimizerNs, 1000, 3);
    rank.Kernel(7, "adam", kOptimizerNs, kStepNs - kOptimizerNs, 3);
  }
}

/// `buckets` all_reduces of `bytes` in the backward pass; the last ends `tail_ns` behind it.
RunBuilder Buckets(int64_t buckets, int64_t bytes, int64_t tail_ns) {
  RunBuilder builder;
  AddStep(builder);
  for (int64_t i = 0; i < buckets; ++i) {
    const int64_t start_ns = kBackwardNs + (10 + i) * kMs;
    const bool last = i + 1 == buckets;
    Issue(builder, 2, start_ns - 5000, static_cast<uint32_t>(10 + i),
          {.start_ns = start_ns,
           .end_ns = last ? kBackwardEndNs + tail_ns : start_ns + kMs / 2,
           .elements = bytes / kElementBytes});
  }
  return builder;
}

std::optional<Finding> SmallBuckets(RunBuilder builder) {
  return FindIn(builder, "small_buckets", {"ddp", "breakdown"});
}

TEST(SmallBucketsTest, ManySmallOnesWithAnExposedTailAreRaised) {
  const auto finding = SmallBuckets(Buckets(4, int64_t{1} << 20, 2 * kMs));
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->severity, FindingSeverity::kInfo);
  EXPECT_FALSE(finding->gain_ns_per_step);
  EXPECT_EQ(EvidenceValue(*finding, "mean_bucket_bytes"), 1 << 20);
  EXPECT_EQ(EvidenceValue(*finding, "exposed_ns_per_pass"), 2.0 * kMs);  // 2 % of the step: just enough
}

TEST(SmallBucketsTest, LargeOrFewOrHiddenOnesAreNot) {
  EXPECT_FALSE(SmallBuckets(Buckets(4, int64_t{4} << 20, 2 * kMs)));
  EXPECT_FALSE(SmallBuckets(Buckets(3, int64_t{1} << 20, 2 * kMs)));
  EXPECT_FALSE(SmallBuckets(Buckets(4, int64_t{1} << 20, 2 * kMs - 1000)));
}

/// A gather of 8 ms before the forward pass, of which the last `exposed_ns` are beside nothing, and the scatter that
/// makes it FSDP.
RunBuilder Gathers(int64_t exposed_ns) {
  RunBuilder builder;
  AddStep(builder);
  Issue(builder, 1, 2000, 10,
        {.start_ns = kBackwardEndNs - 8 * kMs + exposed_ns,
         .end_ns = kBackwardEndNs + exposed_ns,
         .name = "_allgather_base"});
  Issue(builder, 2, 30 * kMs, 11,
        {.start_ns = 40 * kMs, .end_ns = 41 * kMs, .name = "_reduce_scatter_base", .stream = 21});
  return builder;
}

std::optional<Finding> ExposedGathers(RunBuilder builder) {
  return FindIn(builder, "exposed_gathers", {"fsdp", "breakdown"});
}

TEST(ExposedGathersTest, AQuarterOfThemExposedIsRaised) {
  const auto finding = ExposedGathers(Gathers(2 * kMs));
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->severity, FindingSeverity::kInfo);
  EXPECT_EQ(finding->ranks, std::vector<int32_t>{0});
  EXPECT_EQ(EvidenceValue(*finding, "gather_exposed_ns"), 2.0 * kMs);
  EXPECT_EQ(EvidenceValue(*finding, "prefetched_count"), 1);  // 6 of 8 ms are beside the backward pass
}

TEST(ExposedGathersTest, LessThanAQuarterOrOfTheStepIsNot) {
  EXPECT_FALSE(ExposedGathers(Gathers(2 * kMs - 1000)));
  // All of it exposed, and under 2 % of the step.
  RunBuilder builder;
  AddStep(builder);
  Issue(builder, 1, 2000, 10,
        {.start_ns = kBackwardEndNs, .end_ns = kBackwardEndNs + 2 * kMs - 1000, .name = "_allgather_base"});
  Issue(builder, 2, 30 * kMs, 11,
        {.start_ns = 40 * kMs, .end_ns = 41 * kMs, .name = "_reduce_scatter_base", .stream = 21});
  EXPECT_FALSE(ExposedGathers(std::move(builder)));
}

/// An exchange behind the step's kernels in which rank 1 gets `hot` of 200 elements.
RunBuilder Exchanges(int64_t hot, int64_t exposed_ns) {
  RunBuilder builder;
  AddStep(builder);
  for (int32_t rank = 0; rank < 2; ++rank) {
    AddCall(builder, {.rank = rank,
                      .start_ns = kBackwardEndNs,
                      .end_ns = kBackwardEndNs + exposed_ns,
                      .name = "all_to_allv",
                      .elements = 100,
                      .group = "0",
                      .group_ranks = "[0, 1]",
                      .out_elements = rank == 1 ? hot : 200 - hot});
  }
  return builder;
}

std::optional<Finding> Uneven(RunBuilder builder) { return FindIn(builder, "uneven_all_to_all", {"moe", "breakdown"}); }

TEST(UnevenAllToAllTest, ARankThatGetsMoreThanItsShareIsNamed) {
  const auto finding = Uneven(Exchanges(150, 2 * kMs));
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->ranks, std::vector<int32_t>{1});
  EXPECT_EQ(EvidenceValue(*finding, "load_ratio"), 1.5);
  EXPECT_EQ(EvidenceValue(*finding, "exposed_ns"), 2.0 * kMs);
}

TEST(UnevenAllToAllTest, EvenOrHiddenExchangesAreNot) {
  EXPECT_FALSE(Uneven(Exchanges(124, 2 * kMs)));
  EXPECT_FALSE(Uneven(Exchanges(150, 2 * kMs - 1000)));
}

}  // namespace
}  // namespace lockstep::analysis
