#include "analysis/critical_path/critical_path.h"

#include <gmock/gmock.h>

#include <numeric>
#include <string>
#include <vector>

#include "analysis/testing/collective_job.h"

namespace lockstep::analysis {
namespace {

using graph::EdgeKind;
using testing::Job;
using testing::kMs;
using testing::RankBuilder;
using testing::RunBuilder;

constexpr const char* kReduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";

/// Steps of 10 ms on two ranks: a gemm, 5 ms on the late rank and 1 ms on the other, then a collective that ends at 8
/// ms on both, which the host waits for.
Job MakeJob(int32_t late_rank, int64_t step_count) {
  RunBuilder builder;
  for (int32_t rank = 0; rank < 2; ++rank) {
    RankBuilder& built = builder.Rank(rank).WorldSize(2);
    for (int64_t step = 0; step < step_count; ++step) {
      const int64_t at = step * 10 * kMs;
      const auto id = static_cast<uint32_t>(10 * step);
      const int64_t gemm_ns = rank == late_rank ? 5 * kMs : kMs;
      built.Annotation(1, "ProfilerStep#" + std::to_string(step), at, 10 * kMs);
      built.Runtime(1, "cudaLaunchKernel", at + kMs, 1000, id + 1);
      built.Runtime(1, "cudaLaunchKernelExC", at + kMs + 2000, 1000, id + 2);
      built.Runtime(1, "cudaDeviceSynchronize", at + 2 * kMs, 6 * kMs, id + 3);
      built.Kernel(7, "gemm", at + kMs + 5000, gemm_ns, id + 1);
      built.Kernel(20, kReduce, at + kMs + 6000 + gemm_ns, at + 8 * kMs - (at + kMs + 6000 + gemm_ns), id + 2);
    }
  }
  return Job(builder.Build());
}

CriticalPath Find(Job& job, uint32_t thread_count = 1) {
  const Collectives collectives = job.Time();
  std::vector<RankGraphs> parts;
  for (size_t rank = 0; rank < job.run.ranks.size(); ++rank)
    parts.push_back(MapJobGraph(MakeRankContext(job.shared, rank)));
  return FindCriticalPath(job.run, collectives, parts, thread_count);
}

int64_t TimeOf(const Job& job, const CriticalPath& path, size_t rank, EdgeKind kind, std::string_view name) {
  int64_t sum_ns = 0;
  for (const CriticalPathRow& row : path.rows) {
    if (row.rank_index == rank && row.kind == kind && job.run.names[row.name] == name) sum_ns += row.path_ns;
  }
  return sum_ns;
}

TEST(CriticalPathTest, PathLastsAsLongAsTheStepAndRunsThroughTheLateRank) {
  Job job = MakeJob(1, 3);
  const CriticalPath path = Find(job);
  ASSERT_EQ(path.steps.size(), 3u);
  EXPECT_TRUE(path.notes.empty());
  for (const CriticalPathStep& step : path.steps) {
    EXPECT_EQ(step.step_ns, 10 * kMs);
    EXPECT_EQ(step.path_ns, step.step_ns);
    EXPECT_EQ(std::accumulate(step.kind_ns.begin(), step.kind_ns.end(), int64_t{0}), step.path_ns);
    int64_t pieces_ns = 0;
    for (const CriticalPathPiece& piece : step.pieces) pieces_ns += piece.duration_ns;
    EXPECT_EQ(pieces_ns, step.path_ns);
  }
  EXPECT_EQ(TimeOf(job, path, 1, EdgeKind::kCompute, "gemm"), 15 * kMs);
  EXPECT_EQ(TimeOf(job, path, 0, EdgeKind::kCompute, "gemm"), 0);
}

TEST(CriticalPathTest, RankThatIsEarlyHasTheTimeItWaitsAsSlackOfItsKernel) {
  Job job = MakeJob(0, 1);
  const CriticalPath path = Find(job);
  ASSERT_EQ(path.steps.size(), 1u);
  ASSERT_EQ(path.names.size(), 2u);
  EXPECT_EQ(path.names[0].slack_ns, 0);  // On the late rank.
  ASSERT_EQ(path.steps[0].slack.size(), 2u);
  EXPECT_EQ(path.steps[0].slack[0].slack_ns, 0);
}

TEST(CriticalPathTest, NumberOfThreadsChangesNothing) {
  Job job = MakeJob(1, 8);
  const CriticalPath one = Find(job, 1);
  const CriticalPath four = Find(job, 4);
  ASSERT_EQ(one.rows.size(), four.rows.size());
  for (size_t i = 0; i < one.rows.size(); ++i) {
    EXPECT_EQ(one.rows[i].step, four.rows[i].step);
    EXPECT_EQ(one.rows[i].name, four.rows[i].name);
    EXPECT_EQ(one.rows[i].path_ns, four.rows[i].path_ns);
  }
}

TEST(CriticalPathTest, RunWithoutEventsHasNoSteps) {
  RunBuilder builder;
  builder.Rank(0);
  Job job(builder.Build());
  EXPECT_TRUE(Find(job).steps.empty());
}

}  // namespace
}  // namespace lockstep::analysis
