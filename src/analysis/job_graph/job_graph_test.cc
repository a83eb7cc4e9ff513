#include "analysis/job_graph/job_graph.h"

#include <gmock/gmock.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/testing/collective_job.h"

namespace lockstep::analysis {
namespace {

using graph::EdgeKind;
using testing::Job;
using testing::kMs;
using testing::PlannedCall;
using testing::RankBuilder;
using testing::RunBuilder;

constexpr const char* kReduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";

std::vector<JobStepGraph> Join(Job& job) {
  const Collectives collectives = job.Time();
  const CollectiveFinder finder(collectives);
  std::vector<RankGraphs> parts;
  for (size_t rank = 0; rank < job.run.ranks.size(); ++rank)
    parts.push_back(MapJobGraph(MakeRankContext(job.shared, rank)));
  std::vector<JobStepGraph> steps;
  for (const JobStepKey& key : ListJobSteps(job.run, parts)) {
    auto step = JoinJobStep(job.run, collectives, finder, parts, key);
    EXPECT_TRUE(step.has_value());
    if (step) steps.push_back(std::move(*step));
  }
  return steps;
}

/// Time on the critical path by (owner, kind, name).
std::map<std::string, int64_t> PathTimes(const Job& job, const JobStepGraph& step) {
  std::map<std::string, int64_t> times;
  for (const uint32_t index : graph::CriticalEdges(step.graph, graph::EarliestTimes(step.graph), step.sink)) {
    const graph::Edge& edge = step.graph.edge(index);
    if (edge.weight_ns == 0) continue;
    const std::string name(job.run.names[NameId{edge.label}]);
    times[std::to_string(edge.owner) + " " + graph::EdgeKindName(edge.kind) + " " + name] += edge.weight_ns;
  }
  return times;
}

/// A step of 10 ms: the host launches a gemm and a collective at once and waits for the device at the end.
void AddDeviceStep(RunBuilder& job, int32_t rank, int64_t gemm_ns, int64_t reduce_end_ns) {
  RankBuilder& builder = job.Rank(rank).WorldSize(2);
  builder.Annotation(1, "ProfilerStep#3", 0, 10 * kMs);
  builder.Op(1, "aten::mm", kMs, kMs);
  builder.Runtime(1, "cudaLaunchKernel", kMs + 100, 1000, 1);
  builder.Runtime(1, "cudaLaunchKernelExC", 2 * kMs + 100, 1000, 2);
  builder.Runtime(1, "cudaDeviceSynchronize", 3 * kMs, reduce_end_ns + 1000 - 3 * kMs, 3);
  builder.Kernel(7, "gemm", kMs + 5100, gemm_ns, 1);
  builder.Kernel(20, kReduce, kMs + 5100 + gemm_ns + 1000, reduce_end_ns - (kMs + 5100 + gemm_ns + 1000), 2);
}

/// Two ranks that reduce until 8 ms; rank 1 computes 4 ms longer before it.
Job UnevenJob() {
  RunBuilder builder;
  AddDeviceStep(builder, 0, kMs, 8 * kMs);
  AddDeviceStep(builder, 1, 5 * kMs, 8 * kMs);
  return Job(builder.Build());
}

TEST(JobGraphTest, PathOfAStepRunsThroughTheKernelThatTheOthersWaitFor) {
  Job job = UnevenJob();
  const auto steps = Join(job);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].step, 3);
  EXPECT_EQ(steps[0].rank_count, 2u);
  EXPECT_EQ(steps[0].observed_ns, 10 * kMs);
  EXPECT_EQ(steps[0].reproduced_ns, 10 * kMs);
  const auto times = PathTimes(job, steps[0]);
  EXPECT_EQ(times.at("1 compute gemm"), 5 * kMs);
  EXPECT_EQ(times.at("1 launch "), 5000);
  int64_t sum_ns = 0;
  for (const auto& entry : times) sum_ns += entry.second;
  EXPECT_EQ(sum_ns, 10 * kMs);
}

TEST(JobGraphTest, StepEndsEarlierWhenTheLateKernelIsShorter) {
  Job job = UnevenJob();
  const auto steps = Join(job);
  ASSERT_EQ(steps.size(), 1u);
  const graph::Graph& graph = steps[0].graph;
  const auto shorter = graph::EarliestTimes(graph, [&](uint32_t i) {
    const graph::Edge& edge = graph.edge(i);
    return edge.kind == EdgeKind::kCompute && edge.owner == 1 ? kMs : edge.weight_ns;
  });
  EXPECT_EQ(shorter[steps[0].sink], 6 * kMs);
}

TEST(JobGraphTest, MainThreadWaitsForTheThreadThatWorksInItsPlace) {
  RunBuilder builder;
  RankBuilder& rank = builder.Rank(0);
  rank.Annotation(1, "ProfilerStep#0", 0, 10 * kMs);
  rank.Op(1, "forward", 0, 2 * kMs);
  rank.Op(2, "backward_a", 3 * kMs, 2 * kMs).Op(2, "backward_b", 5 * kMs, 3 * kMs);
  rank.Op(1, "optimizer", 8 * kMs + 1000, kMs);
  Job job(builder.Build());
  const auto steps = Join(job);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].reproduced_ns, 10 * kMs);
  const auto times = PathTimes(job, steps[0]);
  EXPECT_EQ(times.at("0 host backward_a"), 2 * kMs);
  EXPECT_EQ(times.at("0 host backward_b"), 3 * kMs);
  EXPECT_EQ(times.at("0 host optimizer"), kMs);
}

/// A step of 10 ms whose gradients go over a CPU backend: `mm_ns` of work, an all_reduce on a thread of its own, and
/// the main thread goes on at 8 ms, when it is done. The other thread closes its range `late_ns` after that.
void AddHostStep(RunBuilder& job, int32_t rank, int64_t mm_ns, int64_t late_ns) {
  RankBuilder& builder = job.Rank(rank).WorldSize(2);
  builder.Annotation(1, "ProfilerStep#3", 0, 10 * kMs);
  builder.Annotation(1, "backward", 0, 9 * kMs);
  builder.Op(1, "aten::mm", 0, mm_ns).Op(1, "c10d::allreduce_", mm_ns, 10'000);
  builder.Op(1, "aten::copy_", 8 * kMs, 10'000);
  builder.Annotation(2, "gloo:all_reduce", mm_ns + 20'000, 8 * kMs + late_ns - mm_ns - 20'000);
  model::CollectiveRecord record;
  record.source = model::CollectiveRecord::Source::kAnnotation;
  record.process_id = 100 + rank;
  record.in_elements = 100;
  record.dtype = builder.Name("float");
  record.event_name = builder.Name("c10d::allreduce_");
  record.start_ns = mm_ns;
  record.duration_ns = 10'000;
  record.thread_id = 1;
  builder.Collective(record);
  record.event_name = builder.Name("gloo:all_reduce");
  record.start_ns = mm_ns + 20'000;
  record.duration_ns = 8 * kMs + late_ns - record.start_ns;
  record.thread_id = 2;
  builder.Collective(record);
}

TEST(JobGraphTest, MainThreadWaitsForACollectiveWhoseRangeIsClosedLate) {
  for (const int64_t late_ns : {int64_t{0}, int64_t{-5000}, int64_t{150'000}, int64_t{400'000}}) {
    RunBuilder builder;
    AddHostStep(builder, 0, kMs, late_ns);
    AddHostStep(builder, 1, 7 * kMs, late_ns);
    Job job(builder.Build());
    const auto steps = Join(job);
    ASSERT_EQ(steps.size(), 1u);
    const graph::Graph& graph = steps[0].graph;
    EXPECT_EQ(steps[0].reproduced_ns, 10 * kMs) << late_ns;
    const auto shorter = graph::EarliestTimes(graph, [&](uint32_t i) {
      const graph::Edge& edge = graph.edge(i);
      const bool is_late_work = edge.owner == 1 && edge.weight_ns == 7 * kMs;
      return is_late_work ? kMs : edge.weight_ns;
    });
    EXPECT_EQ(shorter[steps[0].sink], 4 * kMs) << late_ns;
  }
}

TEST(JobGraphTest, TraceWithoutStepsIsOneWindow) {
  RunBuilder builder;
  builder.Rank(0).Op(1, "aten::mm", 5, 100).Kernel(7, "gemm", 50, 300);
  Job job(builder.Build());
  const auto steps = Join(job);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].observed_ns, 345);
  EXPECT_EQ(steps[0].reproduced_ns, 345);
}

TEST(JobGraphTest, EmptyTraceHasNoSteps) {
  RunBuilder builder;
  builder.Rank(0);
  Job job(builder.Build());
  EXPECT_TRUE(Join(job).empty());
}

TEST(JobGraphTest, LongChainOfKernelsIsOneEdgeForEachName) {
  RunBuilder builder;
  RankBuilder& rank = builder.Rank(0);
  rank.Annotation(1, "ProfilerStep#0", 0, 100);
  rank.Runtime(1, "cudaGraphLaunch", 0, 50, 9);
  for (int i = 0; i < 1000; ++i) rank.Kernel(7, i % 2 == 0 ? "a" : "b", 100 + i * 10, 10, 9);
  Job job(builder.Build());
  const auto steps = Join(job);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_LT(steps[0].graph.edge_count(), 12u);
  const auto times = PathTimes(job, steps[0]);
  EXPECT_EQ(times.at("0 compute a"), 5000);
  EXPECT_EQ(times.at("0 compute b"), 5000);
}

}  // namespace
}  // namespace lockstep::analysis
