#include "analysis/idle.h"

#include <gtest/gtest.h>

#include <vector>

#include "analysis/breakdown.h"
#include "analysis/host_idle.h"
#include "analysis/testing/analysed_rank.h"

namespace lockstep::analysis {
namespace {

using testing::AnalysedRank;
using testing::RunBuilder;

struct Rows {
  std::vector<IdleRow> streams;
  IdleHostRow host;
  BreakdownRow breakdown;
};

Rows Compute(RunBuilder& job) {
  const AnalysedRank rank(job);
  Rows rows;
  ComputeIdle(rank.context, &rows.streams, &rows.host);
  std::vector<BreakdownRow> steps;
  ComputeBreakdown(rank.context, &rows.breakdown, &steps);
  return rows;
}

TEST(IdleTest, GapsAreClassifiedByLaunchAndLength) {
  RunBuilder job;
  job.Rank(0)
      .Runtime(1, "cudaLaunchKernel", 0, 10, 1)
      .Runtime(1, "cudaLaunchKernel", 20, 10, 2)       // before the first kernel ends
      .Runtime(1, "cudaLaunchKernel", 200'000, 10, 3)  // after the second ended
      .Runtime(1, "cudaLaunchKernel", 200'020, 10, 4)
      .Kernel(7, "a", 1'000, 1'000, 1)
      .Kernel(7, "b", 3'000, 1'000, 2)
      .Kernel(7, "c", 210'000, 1'000, 3)
      .Kernel(7, "d", 300'000, 1'000, 4);
  const Rows rows = Compute(job);
  ASSERT_EQ(rows.streams.size(), 1u);
  EXPECT_EQ(rows.streams[0].kernel_wait_ns, 1'000);
  EXPECT_EQ(rows.streams[0].host_wait_ns, 206'000);
  EXPECT_EQ(rows.streams[0].other_ns, 89'000);
}

TEST(IdleTest, ALaunchAtTheVeryEndOfThePreviousEventIsNotLate) {
  RunBuilder job;
  job.Rank(0).Runtime(1, "cudaLaunchKernel", 20, 1, 2).Kernel(7, "a", 0, 20).Kernel(7, "b", 30, 10, 2);
  const Rows rows = Compute(job);
  EXPECT_EQ(rows.streams[0].host_wait_ns, 0);
  EXPECT_EQ(rows.streams[0].kernel_wait_ns, 10);
}

TEST(IdleTest, WithoutALaunchInTheFileOnlyTheLengthCounts) {
  RunBuilder job;
  job.Rank(0).Kernel(7, "a", 0, 10).Kernel(7, "b", 20, 10).Kernel(7, "c", 100'000, 10);
  const Rows rows = Compute(job);
  EXPECT_EQ(rows.streams[0].kernel_wait_ns, 10);
  EXPECT_EQ(rows.streams[0].other_ns, 99'970);
}

TEST(IdleTest, OverlapByRoundingCancelsOut) {
  RunBuilder job;
  job.Rank(0).Kernel(7, "a", 0, 101).Kernel(7, "b", 100, 10).Kernel(7, "c", 115, 10);
  const Rows rows = Compute(job);
  EXPECT_EQ(rows.streams[0].kernel_wait_ns, 4);
}

TEST(IdleTest, ConcurrentEventsOfAStreamLeaveNoNegativeSum) {
  RunBuilder job;
  job.Rank(0).Kernel(7, "a", 0, 100).Kernel(7, "b", 10, 90).Kernel(7, "c", 20, 80);
  const Rows rows = Compute(job);
  EXPECT_EQ(rows.streams[0].kernel_wait_ns, 0);
}

TEST(IdleTest, EveryStreamOfEveryDeviceHasARow) {
  RunBuilder job;
  job.Rank(0).Kernel(7, "a", 0, 1).Kernel(8, "a", 0, 1).OnDevice(1).Kernel(7, "a", 0, 1);
  const Rows rows = Compute(job);
  ASSERT_EQ(rows.streams.size(), 3u);
  EXPECT_EQ(rows.streams[2].device.value, 1);
  EXPECT_EQ(rows.streams[2].stream.value, 7);
}

TEST(IdleHostTest, IdleTimeIsBookedByPriority) {
  RunBuilder job;
  job.Rank(0)
      .Annotation(1, "ProfilerStep#1", 0, 1'000)
      .Kernel(7, "a", 0, 100)
      .Kernel(7, "b", 500, 100)
      .Annotation(1, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 150, 100)
      .Op(1, "aten::copy_", 200, 200)
      .Runtime(1, "cudaMemcpyAsync", 350, 30)
      .Runtime(2, "cudaStreamSynchronize", 370, 20);
  const Rows rows = Compute(job);
  EXPECT_EQ(rows.host.runtime_ns, 40);
  EXPECT_EQ(rows.host.data_loader_ns, 100);
  EXPECT_EQ(rows.host.operator_ns, 100 + 10);
  EXPECT_EQ(rows.host.unknown_ns, 50 + 100);
  EXPECT_EQ(rows.host.runtime_ns + rows.host.data_loader_ns + rows.host.operator_ns + rows.host.unknown_ns,
            rows.breakdown.idle_ns);
}

TEST(IdleHostTest, PartsSumToTheIdleTimeOfSeveralDevices) {
  RunBuilder job;
  job.Rank(0)
      .Op(1, "aten::mm", 0, 60)
      .Runtime(1, "cudaLaunchKernel", 20, 10)
      .Kernel(7, "a", 0, 10)
      .Kernel(7, "b", 50, 10)
      .OnDevice(1)
      .Kernel(7, "a", 25, 1)
      .Kernel(7, "b", 90, 10);
  const Rows rows = Compute(job);
  EXPECT_EQ(rows.host.runtime_ns, 10 + 4);
  EXPECT_EQ(rows.host.operator_ns, 30 + 30);
  EXPECT_EQ(rows.host.unknown_ns, 30);
  EXPECT_EQ(rows.breakdown.idle_ns, 40 + 64);
}

TEST(IdleHostTest, ACpuOnlyRankSaysWhatItsIdleTimeWas) {
  RunBuilder job;
  job.Rank(0)
      .Annotation(1, "ProfilerStep#1", 0, 100)
      .Annotation(1, "enumerate(DataLoader)#_x.__next__", 5, 20)
      .Op(1, "aten::mm", 30, 30)
      .Op(1, "c10d::barrier", 60, 10);
  const Rows rows = Compute(job);
  EXPECT_TRUE(rows.streams.empty());
  EXPECT_EQ(rows.host.data_loader_ns, 20);
  EXPECT_EQ(rows.host.operator_ns, 10);
  EXPECT_EQ(rows.host.unknown_ns, 5 + 5 + 30);
  EXPECT_EQ(rows.breakdown.idle_ns, 70);
}

}  // namespace
}  // namespace lockstep::analysis
