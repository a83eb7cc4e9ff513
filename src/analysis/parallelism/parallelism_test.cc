// Groups, buckets, sharded weights and FLOPs of hand-made jobs.
#include <gtest/gtest.h>

#include <utility>

#include "analysis/parallelism/ddp.h"
#include "analysis/parallelism/flops.h"
#include "analysis/parallelism/fsdp.h"
#include "analysis/parallelism/pipeline.h"
#include "analysis/parallelism/process_groups.h"
#include "analysis/parallelism/rank_traffic.h"
#include "analysis/rank_context.h"
#include "analysis/testing/analysed_rank.h"
#include "analysis/testing/collective_job.h"

namespace lockstep::analysis {
namespace {

using testing::Job;
using testing::kMs;
using testing::PlannedCall;
using testing::RunBuilder;

std::vector<RankTraffic> Traffic(const Job& job) {
  std::vector<RankTraffic> traffic;
  for (size_t i = 0; i < job.run.ranks.size(); ++i) traffic.push_back(MapTraffic(MakeRankContext(job.shared, i)));
  return traffic;
}

/// A call of every member at one time.
void AddToAll(RunBuilder& builder, const std::vector<int32_t>& ranks, PlannedCall call) {
  call.group_ranks = "[";
  for (const int32_t rank : ranks) call.group_ranks += (call.group_ranks.size() > 1 ? ", " : "") + std::to_string(rank);
  call.group_ranks += "]";
  for (const int32_t rank : ranks) {
    call.rank = rank;
    AddCall(builder, call);
  }
}

TEST(ProcessGroupsTest, NeighboursThatTalkMostAreTensorAndStridesAreData) {
  RunBuilder builder;
  for (int i = 0; i < 10; ++i) {
    AddToAll(builder, {0, 1}, {.start_ns = i * kMs, .end_ns = i * kMs + 1000, .group = "1"});
    AddToAll(builder, {2, 3}, {.start_ns = i * kMs, .end_ns = i * kMs + 1000, .group = "2"});
  }
  AddToAll(builder, {0, 2}, {.start_ns = 20 * kMs, .end_ns = 21 * kMs, .group = "3"});
  AddToAll(builder, {1, 3}, {.start_ns = 20 * kMs, .end_ns = 21 * kMs, .group = "4"});
  const Job job(builder.Build());
  const ProcessGroups groups = FinishGroups(job.run, Traffic(job));
  ASSERT_EQ(groups.rows.size(), 4u);
  for (const ProcessGroupRow& row : groups.rows) {
    EXPECT_EQ(row.kind, row.name < "3" ? GroupKind::kTensor : GroupKind::kData) << row.name;
    EXPECT_EQ(row.basis, GroupBasis::kMembership);
    EXPECT_EQ(row.members.size(), 2u);
    EXPECT_FALSE(row.is_world);
  }
}

TEST(ProcessGroupsTest, SendsBetweenNeighboursAreAPipeline) {
  RunBuilder builder;
  for (int32_t rank = 0; rank < 3; ++rank) {
    const auto peer = [&](int32_t to) {
      return PlannedCall{.rank = rank,
                         .start_ns = rank * kMs,
                         .end_ns = rank * kMs + 1000,
                         .name = to > rank ? "send" : "recv",
                         .group = "9",
                         .group_ranks = "[0, 1, 2]",
                         .peer = to};
    };
    if (rank < 2) AddCall(builder, peer(rank + 1));
    if (rank > 0) AddCall(builder, peer(rank - 1));
    builder.Rank(rank).WorldSize(6);
  }
  const Job job(builder.Build());
  const ProcessGroups groups = FinishGroups(job.run, Traffic(job));
  ASSERT_EQ(groups.rows.size(), 1u);
  EXPECT_EQ(groups.rows[0].kind, GroupKind::kPipeline);
  EXPECT_EQ(groups.rows[0].confidence, Confidence::kMedium);
  EXPECT_EQ(groups.rows[0].call_count, 4u);
}

TEST(ProcessGroupsTest, AGroupOfAllRanksThatNothingExplainsIsTheWorld) {
  RunBuilder builder;
  AddToAll(builder, {0, 1}, {.start_ns = 0, .end_ns = 1000, .name = "broadcast", .group = "0"});
  const Job job(builder.Build());
  const ProcessGroups groups = FinishGroups(job.run, Traffic(job));
  ASSERT_EQ(groups.rows.size(), 1u);
  EXPECT_EQ(groups.rows[0].kind, GroupKind::kWorld);
  EXPECT_TRUE(groups.rows[0].is_world);
}

TEST(ProcessGroupsTest, ExposedIsWhatNoKernelComputesBeside) {
  RunBuilder builder;
  AddToAll(builder, {0, 1}, {.start_ns = 1000, .end_ns = 5000, .group = "0"});
  AddToAll(builder, {0, 1}, {.start_ns = 4000, .end_ns = 6000, .group = "0", .stream = 21});
  builder.Rank(0).Kernel(7, "gemm", 0, 2000);
  builder.Rank(1).Kernel(7, "gemm", 0, 2000);
  const Job job(builder.Build());
  const ProcessGroups groups = FinishGroups(job.run, Traffic(job));
  ASSERT_EQ(groups.rows.size(), 1u);
  EXPECT_EQ(groups.rows[0].communication_ns, 2 * 5000);
  EXPECT_EQ(groups.rows[0].exposed_ns, 2 * 4000);
  ASSERT_EQ(groups.operations.size(), 1u);
  EXPECT_EQ(groups.operations[0].duration_ns, 2 * 6000);
}

/// Two ranks: forward kernel 0..2 ms, backward 2..10 ms on CPU and device, two buckets: one inside, one with 3 ms
/// behind.
Job DdpJob() {
  RunBuilder builder;
  for (int32_t rank = 0; rank < 2; ++rank) {
    auto& trace = builder.Rank(rank);
    trace.Op(1, "aten::mm", 0, kMs);
    trace.Runtime(1, "cudaLaunchKernel", 1000, 1000, 1).Kernel(7, "gemm", 0, 2 * kMs, 1);
    trace.Op(2, "autograd::engine::evaluate_function: MmBackward0", 2 * kMs, 8 * kMs);
    trace.Runtime(2, "cudaLaunchKernel", 2 * kMs + 1000, 1000, 2).Kernel(7, "gemm", 2 * kMs, 8 * kMs, 2);
    for (uint32_t bucket = 0; bucket < 2; ++bucket) {
      const int64_t issue_ns = (bucket == 0 ? 4 : 8) * kMs;
      const int64_t start_ns = (bucket == 0 ? 4 : 9) * kMs;
      const int64_t duration_ns = (bucket == 0 ? 2 : 4) * kMs;
      trace.Runtime(2, "cudaLaunchKernelExC", issue_ns, 1000, 10 + bucket);
      trace.Kernel(20, testing::KernelName("allreduce"), start_ns, duration_ns, 10 + bucket);
      model::CollectiveRecord record;
      record.start_ns = start_ns;
      record.duration_ns = duration_ns;
      record.thread_id = 20;
      record.collective_name = trace.Name("allreduce");
      record.dtype = trace.Name("Float");
      record.group_name = trace.Name("0");
      record.group_description = trace.Name("default_pg");
      record.group_ranks = trace.Name("[0, 1]");
      record.in_elements = record.out_elements = 1000;
      record.event_name = trace.Name(testing::KernelName("allreduce"));
      trace.Collective(record);
    }
  }
  return Job(builder.Build());
}

TEST(DdpTest, BucketsAreTheAllReducesOfTheBackwardPass) {
  const Job job = DdpJob();
  const auto traffic = Traffic(job);
  ASSERT_EQ(traffic[0].phases.size(), 1u);
  EXPECT_EQ(traffic[0].phases[0].device->start_ns, 2 * kMs);
  EXPECT_EQ(traffic[0].phases[0].device->end_ns, 10 * kMs);
  const ProcessGroups groups = FinishGroups(job.run, traffic);
  ASSERT_EQ(groups.rows.size(), 1u);
  EXPECT_EQ(groups.rows[0].kind, GroupKind::kData);
  const Ddp ddp = FinishDdp(job.run, traffic, groups.rows);
  ASSERT_EQ(ddp.ranks.size(), 2u);
  EXPECT_EQ(ddp.ranks[0].buckets_per_pass, 2);
  EXPECT_EQ(ddp.ranks[0].bytes_per_pass, 8000);
  EXPECT_EQ(ddp.ranks[0].exposed_ns, 3 * kMs);
  EXPECT_EQ(ddp.ranks[0].tail_ns, 3 * kMs);
  ASSERT_EQ(ddp.buckets.size(), 2u);
  EXPECT_EQ(ddp.buckets[0].issue_ratio, 0.25);
  EXPECT_EQ(ddp.buckets[0].mean_overlapped_ns, 2 * kMs);
  EXPECT_EQ(ddp.buckets[1].mean_overlapped_ns, 1 * kMs);
  EXPECT_EQ(ddp.buckets[1].mean_exposed_ns, 3 * kMs);
  EXPECT_EQ(ddp.buckets[1].call_count, 2u);
  EXPECT_TRUE(FinishFsdp(job.run, traffic, groups.rows).empty());
}

/// A pipeline of `stages` ranks with `batches` micro-batches, by the sends and receives of each stage in order: F sends
/// on (the last stage receives), B receives the gradient (the last stage sends it).
std::vector<PipelineRow> PipelineOf(const std::vector<std::string>& turns) {
  RunBuilder builder;
  const auto stages = static_cast<int32_t>(turns.size());
  std::string all;
  for (int32_t rank = 0; rank < stages; ++rank) all += (rank > 0 ? ", " : "") + std::to_string(rank);
  for (int32_t rank = 0; rank < stages; ++rank) {
    builder.Rank(rank).WorldSize(2 * stages);
    const bool last = rank + 1 == stages;
    int64_t now_ns = 0;
    for (const char turn : turns[static_cast<size_t>(rank)]) {
      const bool sends = (turn == 'F') != last;
      AddCall(builder, {.rank = rank,
                        .start_ns = now_ns,
                        .end_ns = now_ns + 1000,
                        .name = sends ? "send" : "recv",
                        .group = "5",
                        .group_ranks = "[" + all + "]",
                        .peer = last ? rank - 1 : rank + 1});
      now_ns += 2000;
    }
  }
  const Job job(builder.Build());
  const auto traffic = Traffic(job);
  return FinishPipeline(job.run, traffic, FinishGroups(job.run, traffic).rows);
}

TEST(PipelineTest, AllForwardThenAllBackwardIsGpipe) {
  const auto rows = PipelineOf({"FFFFBBBB", "FFFFBBBB"});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].schedule, PipelineSchedule::kGpipe);
  EXPECT_EQ(rows[0].microbatches_per_step, 4);
  EXPECT_EQ(rows[1].in_flight_count, 4u);
  EXPECT_EQ(rows[0].bubble_ns, 8000);
}

TEST(PipelineTest, NoMoreUnderWayThanStagesFromHereIsOneForwardOneBackward) {
  const auto rows = PipelineOf({"FFFBFBBB", "FFBFBFBB", "FBFBFBFB"});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].schedule, PipelineSchedule::kOneForwardOneBackward);
  EXPECT_EQ(rows[0].in_flight_count, 3u);
  EXPECT_EQ(rows[2].in_flight_count, 1u);
}

TEST(PipelineTest, TooFewMicrobatchesDoNotTellTheSchedule) {
  const auto rows = PipelineOf({"FB", "FB"});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].schedule, PipelineSchedule::kUnknown);
}

TEST(FlopsTest, TimeOfACallIsThatOfTheKernelsLaunchedInIt) {
  RunBuilder builder;
  auto& rank = builder.Rank(0);
  rank.Device({.ordinal = {0}, .name = "NVIDIA H100 80GB HBM3"});
  rank.Op(1, "aten::mm", 1000, 1000);
  rank.Runtime(1, "cudaLaunchKernel", 1500, 10, 1).Kernel(7, "gemm_bf16", 3000, 400, 1);
  rank.Runtime(1, "cudaLaunchKernel", 2500, 10, 2).Kernel(7, "other", 3400, 1600, 2);
  model::OperatorShape shape{1000,
                             1000,
                             1,
                             rank.Name("aten::mm"),
                             rank.Name("[[16,32],[32,8]]"),
                             rank.Name(R"(["c10::BFloat16","c10::BFloat16"])"),
                             {}};
  model::Run run = builder.Build();
  run.ranks[0].shapes.push_back(shape);
  const Job job(std::move(run));
  const FlopsPartial flops = MapFlops(MakeRankContext(job.shared, 0));
  ASSERT_EQ(flops.rows.size(), 1u);
  const FlopsRow& row = flops.rows[0];
  EXPECT_EQ(row.time_ns, 400);
  EXPECT_EQ(row.flops, 2 * 16 * 8 * 32);
  EXPECT_EQ(row.precision, Precision::kBf16);
  EXPECT_DOUBLE_EQ(*row.mean_flops_per_s, 8192.0 / 400e-9);
  EXPECT_EQ(row.compute_bound, false);
  ASSERT_TRUE(flops.rank);
  EXPECT_EQ(flops.rank->span_ns, 4000);
  EXPECT_DOUBLE_EQ(*flops.rank->mfu, 8192.0 / 4000e-9 / 989.5e12);
}

TEST(FlopsTest, WithoutShapesThereIsNothing) {
  RunBuilder builder;
  builder.Rank(0).Op(1, "aten::mm", 0, 1000);
  const Job job(builder.Build());
  const FlopsPartial flops = MapFlops(MakeRankContext(job.shared, 0));
  EXPECT_FALSE(flops.rank);
  EXPECT_TRUE(flops.rows.empty());
}

}  // namespace
}  // namespace lockstep::analysis
