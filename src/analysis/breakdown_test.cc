#include "analysis/breakdown.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "analysis/testing/analysed_rank.h"

namespace lockstep::analysis {
namespace {

using testing::AnalysedRank;
using testing::RunBuilder;

struct Rows {
  BreakdownRow whole;
  std::vector<BreakdownRow> steps;
};

Rows Compute(RunBuilder& job, AnalysisOptions options = {}) {
  const AnalysedRank rank(job, std::move(options));
  Rows rows;
  ComputeBreakdown(rank.context, &rows.whole, &rows.steps);
  return rows;
}

void ExpectPartsSum(const BreakdownRow& row) {
  EXPECT_EQ(row.busy_ns + row.idle_ns, row.span_ns);
  EXPECT_EQ(row.compute_ns + row.exposed_communication_ns + row.exposed_memory_ns, row.busy_ns);
  EXPECT_EQ(row.exposed_communication_ns + row.overlapped_communication_ns, row.communication_ns);
  EXPECT_GE(row.idle_ns, 0);
}

TEST(BreakdownTest, SplitsTheSpanOfOneDevice) {
  RunBuilder job;
  job.Rank(0)
      .Kernel(7, "gemm", 100, 50)
      .Kernel(20, "ncclAllReduce", 120, 60)
      .Memcpy(21, "Memcpy HtoD", 170, 30)
      .Memset(7, "Memset", 250, 10);
  const BreakdownRow row = Compute(job).whole;
  EXPECT_EQ(row.basis, Basis::kDevice);
  EXPECT_EQ(row.start_ns, 100);
  EXPECT_EQ(row.span_ns, 160);
  EXPECT_EQ(row.compute_ns, 50);
  EXPECT_EQ(row.communication_ns, 60);
  EXPECT_EQ(row.overlapped_communication_ns, 30);
  EXPECT_EQ(row.exposed_communication_ns, 30);
  EXPECT_EQ(row.memory_ns, 40);
  EXPECT_EQ(row.exposed_memory_ns, 30);
  EXPECT_EQ(row.idle_ns, 50);
  ASSERT_TRUE(row.communication_overlap_ratio());
  EXPECT_DOUBLE_EQ(*row.communication_overlap_ratio(), 0.5);
  ExpectPartsSum(row);
}

TEST(BreakdownTest, WithoutCommunicationThereIsNoOverlapRatio) {
  RunBuilder job;
  job.Rank(0).Kernel(7, "gemm", 0, 10);
  EXPECT_FALSE(Compute(job).whole.communication_overlap_ratio());
}

TEST(BreakdownTest, DevicesOfOneRankAreMeasuredApartAndAdded) {
  RunBuilder job;
  job.Rank(0).OnDevice(0).Kernel(7, "gemm", 0, 10).OnDevice(1).Kernel(7, "gemm", 5, 10).Kernel(7, "gemm", 25, 5);
  const BreakdownRow row = Compute(job).whole;
  EXPECT_EQ(row.span_ns, 10 + 25);
  EXPECT_EQ(row.busy_ns, 10 + 15);
  EXPECT_EQ(row.idle_ns, 10);
}

TEST(BreakdownTest, ARankWithoutEventsHasNoBasis) {
  RunBuilder job;
  job.Rank(0).Python(1, "main", 0, 100);
  const BreakdownRow row = Compute(job).whole;
  EXPECT_EQ(row.basis, Basis::kNone);
  EXPECT_EQ(row.span_ns, 0);
  EXPECT_EQ(row.idle_ns, 0);
}

TEST(BreakdownTest, StepRowsAreClippedToTheirWindow) {
  RunBuilder job;
  job.Rank(0)
      .Annotation(1, "ProfilerStep#3", 0, 100)
      .Annotation(1, "ProfilerStep#4", 100, 100)
      .Runtime(1, "cudaLaunchKernel", 10, 5, 1)
      .Runtime(1, "cudaLaunchKernel", 90, 5, 2)
      .Runtime(1, "cudaLaunchKernel", 150, 5, 3)
      .Kernel(7, "gemm", 20, 30, 1)
      .Kernel(7, "gemm", 95, 25, 2)  // launched in step 3, ends in step 4: step 3 ends with it
      .Kernel(7, "gemm", 160, 100, 3);
  const Rows rows = Compute(job);
  ASSERT_EQ(rows.steps.size(), 2u);
  EXPECT_EQ(rows.steps[0].step_number, 3);
  EXPECT_EQ(rows.steps[0].start_ns, 0);
  EXPECT_EQ(rows.steps[0].span_ns, 120);
  EXPECT_EQ(rows.steps[0].compute_ns, 55);
  EXPECT_EQ(rows.steps[1].start_ns, 120);
  EXPECT_EQ(rows.steps[1].span_ns, 140);
  EXPECT_EQ(rows.steps[1].compute_ns, 100);
  for (const BreakdownRow& row : rows.steps) ExpectPartsSum(row);
}

TEST(BreakdownTest, TheFirstWindowStartsAfterWorkThatNoStepLaunched) {
  RunBuilder job;
  job.Rank(0)
      .Annotation(1, "ProfilerStep#3", 0, 100)
      .Runtime(1, "cudaLaunchKernel", 10, 5, 1)
      .Kernel(7, "warmup", 0, 15)
      .Kernel(7, "gemm", 20, 30, 1);
  const Rows rows = Compute(job);
  ASSERT_EQ(rows.steps.size(), 1u);
  EXPECT_EQ(rows.steps[0].start_ns, 15);
  EXPECT_EQ(rows.steps[0].span_ns, 85);
  EXPECT_EQ(rows.steps[0].compute_ns, 30);
}

TEST(BreakdownTest, WithoutTheLastStepOnlyWorkLaunchedBeforeItCounts) {
  RunBuilder job;
  job.Rank(0)
      .Annotation(1, "ProfilerStep#3", 0, 100)
      .Annotation(1, "ProfilerStep#4", 100, 100)
      .Runtime(1, "cudaLaunchKernel", 90, 5, 1)
      .Runtime(1, "cudaLaunchKernel", 150, 5, 2)
      .Kernel(7, "gemm", 10, 10)  // no launch in the file
      .Kernel(7, "gemm", 110, 20, 1)
      .Kernel(7, "gemm", 160, 100, 2);
  AnalysisOptions options;
  options.drop_last_step = true;
  const Rows rows = Compute(job, options);
  EXPECT_EQ(rows.whole.start_ns, 110);
  EXPECT_EQ(rows.whole.span_ns, 20);
  EXPECT_EQ(rows.whole.compute_ns, 20);
  EXPECT_EQ(rows.steps.size(), 1u);
}

TEST(BreakdownTest, AloneAStepIsNotDropped) {
  RunBuilder job;
  job.Rank(0).Annotation(1, "ProfilerStep#3", 0, 100).Kernel(7, "gemm", 10, 10);
  AnalysisOptions options;
  options.drop_last_step = true;
  const Rows rows = Compute(job, options);
  EXPECT_EQ(rows.whole.compute_ns, 10);
  EXPECT_EQ(rows.steps.size(), 1u);
}

TEST(BreakdownTest, ACpuOnlyRankIsSplitByItsOperatorsAndCollectives) {
  RunBuilder job;
  job.Rank(0)
      .Annotation(1, "ProfilerStep#0", 0, 200)  // a window, not work
      .Op(1, "aten::mm", 10, 40)
      .Op(1, "aten::add_", 20, 5)                                         // nested: counted once
      .Op(2, "autograd::engine::evaluate_function: MmBackward0", 40, 60)  // [40, 100) on the autograd thread
      .Annotation(2, "gloo:all_reduce", 60, 90)                           // [60, 150), ends on another thread
      .Op(2, "aten::mul", 110, 10);
  const Rows rows = Compute(job);
  EXPECT_EQ(rows.whole.basis, Basis::kCpu);
  EXPECT_EQ(rows.whole.span_ns, 200);
  EXPECT_EQ(rows.whole.compute_ns, 90 + 10);
  EXPECT_EQ(rows.whole.communication_ns, 90);
  EXPECT_EQ(rows.whole.overlapped_communication_ns, 40 + 10);
  EXPECT_EQ(rows.whole.exposed_communication_ns, 40);
  EXPECT_EQ(rows.whole.idle_ns, 10 + 50);
  ExpectPartsSum(rows.whole);
  ASSERT_EQ(rows.steps.size(), 1u);
  ExpectPartsSum(rows.steps[0]);
}

TEST(BreakdownTest, WaitingForACollectiveOnTheCpuIsNotCompute) {
  RunBuilder job;
  job.Rank(0)
      .Op(1, "aten::mm", 0, 10)
      .Op(1, "_c10d_functional::wait_tensor", 10, 30)
      .Annotation(1, "gloo:all_gather", 5, 40)
      .Op(1, "aten::mm", 50, 10);
  const BreakdownRow row = Compute(job).whole;
  EXPECT_EQ(row.compute_ns, 20);
  EXPECT_EQ(row.exposed_communication_ns, 35);
  EXPECT_EQ(row.idle_ns, 5);
}

/// A random rank: several streams and kinds, steps, launches with and without a call.
void AddRandomRank(std::mt19937* random, int64_t shift_ns, RunBuilder* job) {
  const auto draw = [random](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(*random);
  };
  auto& rank = job->Rank(0);
  for (int step = 0; step < 4; ++step) {
    rank.Annotation(1, "ProfilerStep#" + std::to_string(step), shift_ns + 250 * step, 250);
  }
  const char* names[] = {"gemm", "ncclKernel", "relu"};
  for (uint32_t i = 1; i <= 60; ++i) {
    const int64_t start = draw(0, 1000);
    if (draw(0, 3) > 0)
      rank.Runtime(1, "cudaLaunchKernel", shift_ns + std::max<int64_t>(0, start - draw(1, 300)), 1, i);
    const int64_t stream = draw(1, 4);
    const int64_t duration = draw(0, 20);
    if (draw(0, 4) == 0) {
      rank.Memcpy(stream, "Memcpy", shift_ns + start, duration, i);
    } else {
      rank.Kernel(stream, names[draw(0, 2)], shift_ns + start, duration, i);
    }
  }
}

TEST(BreakdownTest, PartsSumAndShiftsInTimeChangeNothing) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    RunBuilder here;
    RunBuilder there;
    constexpr int64_t kShift = 1'700'000'000'000'000'123;
    std::mt19937 random(seed);
    AddRandomRank(&random, 0, &here);
    random.seed(seed);
    AddRandomRank(&random, kShift, &there);
    const Rows a = Compute(here);
    const Rows b = Compute(there);
    ASSERT_EQ(a.steps.size(), b.steps.size());
    std::vector<BreakdownRow> rows_a = a.steps;
    std::vector<BreakdownRow> rows_b = b.steps;
    rows_a.push_back(a.whole);
    rows_b.push_back(b.whole);
    for (size_t i = 0; i < rows_a.size(); ++i) {
      ExpectPartsSum(rows_a[i]);
      EXPECT_EQ(rows_a[i].start_ns + kShift, rows_b[i].start_ns);
      EXPECT_EQ(rows_a[i].span_ns, rows_b[i].span_ns);
      EXPECT_EQ(rows_a[i].compute_ns, rows_b[i].compute_ns);
      EXPECT_EQ(rows_a[i].communication_ns, rows_b[i].communication_ns);
      EXPECT_EQ(rows_a[i].memory_ns, rows_b[i].memory_ns);
      EXPECT_EQ(rows_a[i].busy_ns, rows_b[i].busy_ns);
    }
    int64_t in_steps_ns = 0;
    for (const BreakdownRow& row : a.steps) in_steps_ns += row.busy_ns;
    EXPECT_LE(in_steps_ns, a.whole.busy_ns);
  }
}

}  // namespace
}  // namespace lockstep::analysis
