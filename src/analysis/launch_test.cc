#include "analysis/launch.h"

#include <gtest/gtest.h>

#include <vector>

#include "analysis/testing/analysed_rank.h"

namespace lockstep::analysis {
namespace {

using testing::AnalysedRank;
using testing::RunBuilder;

TEST(LaunchTest, DelaysRunFromTheEndOfTheCallToTheStartOfTheEvent) {
  RunBuilder job;
  job.Rank(0)
      .Runtime(1, "cudaLaunchKernel", 0, 10, 1)
      .Runtime(1, "cudaLaunchKernel", 20, 60'000, 2)  // long call; the event starts before it ends
      .Driver(1, "cuLaunchKernelEx", 70'000, 10, 3)
      .Kernel(7, "a", 15, 5, 1)
      .Kernel(7, "b", 1'000, 100, 2)
      .Kernel(7, "c", 270'010, 100, 3)
      .Kernel(7, "d", 300'000, 1);
  const AnalysedRank rank(job);
  LaunchRow row;
  std::vector<QueueRow> queues;
  ComputeLaunch(rank.context, &row, &queues);
  EXPECT_EQ(row.launch_count, 3u);
  EXPECT_EQ(row.unlinked_count, 1u);
  EXPECT_EQ(row.total_delay_ns, 5 + 0 + 200'000);
  EXPECT_EQ(row.max_delay_ns, 200'000);
  EXPECT_EQ(row.median_delay_ns, 5);
  EXPECT_EQ(row.long_delay_count, 1u);
  EXPECT_EQ(row.short_kernel_count, 2u);
  EXPECT_EQ(row.long_call_count, 1u);
}

TEST(LaunchTest, WithoutLaunchesThereIsNoMedian) {
  RunBuilder job;
  job.Rank(0).Kernel(7, "d", 0, 1);
  const AnalysedRank rank(job);
  LaunchRow row;
  std::vector<QueueRow> queues;
  ComputeLaunch(rank.context, &row, &queues);
  EXPECT_FALSE(row.median_delay_ns);
  EXPECT_TRUE(queues.empty());
}

TEST(LaunchTest, TheQueueGrowsWithLaunchesAndShrinksWithStarts) {
  RunBuilder job;
  job.Rank(0)
      .Runtime(1, "cudaLaunchKernel", 0, 1, 1)
      .Runtime(1, "cudaLaunchKernel", 5, 1, 2)
      .Runtime(2, "cudaLaunchKernel", 3, 1, 3)  // another thread, same stream
      .Kernel(7, "a", 10, 5, 1)
      .Kernel(7, "c", 15, 5, 3)
      .Kernel(7, "b", 20, 5, 2);
  const AnalysedRank rank(job);
  LaunchRow row;
  std::vector<QueueRow> queues;
  ComputeLaunch(rank.context, &row, &queues);
  ASSERT_EQ(queues.size(), 1u);
  EXPECT_EQ(queues[0].change_count, 6u);
  EXPECT_EQ(queues[0].max_length, 3);
  EXPECT_DOUBLE_EQ(queues[0].mean_length, (1 + 2 + 3 + 2 + 1 + 0) / 6.0);
  EXPECT_EQ(queues[0].full_ns, 0);
}

TEST(LaunchTest, AFullQueueIsTimed) {
  RunBuilder job;
  auto& builder = job.Rank(0);
  for (uint32_t i = 0; i < 1025; ++i) {
    builder.Runtime(1, "cudaLaunchKernel", i, 1, i + 1);
    builder.Kernel(7, "a", 5'000 + 10 * i, 10, i + 1);
  }
  const AnalysedRank rank(job);
  LaunchRow row;
  std::vector<QueueRow> queues;
  ComputeLaunch(rank.context, &row, &queues);
  ASSERT_EQ(queues.size(), 1u);
  EXPECT_EQ(queues[0].max_length, 1025);
  EXPECT_EQ(queues[0].full_ns, 5'010 - 1'023);  // from the 1024th launch to the second start
}

TEST(LaunchTest, NodesOfAGraphAreCountedApart) {
  RunBuilder job;
  job.Rank(0).Runtime(1, "cudaGraphLaunch", 0, 1, 1).Kernel(7, "a", 10, 5, 1).Kernel(7, "b", 20, 5, 1);
  const AnalysedRank rank(job);
  LaunchRow row;
  std::vector<QueueRow> queues;
  ComputeLaunch(rank.context, &row, &queues);
  EXPECT_EQ(row.graph_event_count, 2u);
  EXPECT_EQ(row.launch_count, 0u);
  EXPECT_EQ(row.unlinked_count, 0u);
  EXPECT_FALSE(row.median_delay_ns);
  EXPECT_TRUE(queues.empty());
}

TEST(LaunchTest, ScatteredCorrelationIdsAreJoinedToo) {
  RunBuilder job;
  job.Rank(0)
      .Runtime(1, "cudaLaunchKernel", 0, 1, 1)
      .Runtime(1, "cudaLaunchKernel", 5, 1, 4'000'000'000)
      .Kernel(7, "a", 10, 5, 1)
      .Kernel(7, "b", 20, 5, 4'000'000'000)
      .Kernel(7, "c", 30, 5, 17);
  const AnalysedRank rank(job);
  LaunchRow row;
  std::vector<QueueRow> queues;
  ComputeLaunch(rank.context, &row, &queues);
  EXPECT_EQ(row.launch_count, 2u);
  EXPECT_EQ(row.unlinked_count, 1u);
  EXPECT_EQ(row.total_delay_ns, 9 + 14);
}

TEST(LaunchTest, OfSeveralCallsWithOneIdTheEarliestCounts) {
  RunBuilder job;
  job.Rank(0).Driver(1, "cuLaunchKernel", 4, 2, 1).Runtime(2, "cudaLaunchKernel", 2, 6, 1).Kernel(7, "a", 10, 5, 1);
  const AnalysedRank rank(job);
  LaunchRow row;
  std::vector<QueueRow> queues;
  ComputeLaunch(rank.context, &row, &queues);
  EXPECT_EQ(row.total_delay_ns, 2);
}

}  // namespace
}  // namespace lockstep::analysis
