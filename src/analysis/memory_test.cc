#include "analysis/memory.h"

#include <gtest/gtest.h>

#include <vector>

#include "analysis/testing/analysed_rank.h"

namespace lockstep::analysis {
namespace {

using testing::AnalysedRank;
using testing::RunBuilder;

TEST(MemoryTest, EachDeviceHasItsPeaksAndCounts) {
  RunBuilder job;
  job.Rank(0)
      .Device({{0}, "GPU", 1'000})
      .Allocation(0, 10, 100, 100, 512)
      .Allocation(-1, 15, 7)
      .Allocation(0, 20, 200, 300, 512)
      .Allocation(0, 30, -100, 200, 512);
  const AnalysedRank rank(job);
  std::vector<MemoryRow> rows;
  ComputeMemory(rank.context, &rows);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].device, -1);
  EXPECT_FALSE(rows[0].peak_allocated_bytes);
  EXPECT_FALSE(rows[0].device_memory_bytes);
  EXPECT_EQ(rows[0].net_bytes, 7);
  EXPECT_EQ(rows[1].device, 0);
  EXPECT_EQ(rows[1].peak_allocated_bytes, 300);
  EXPECT_EQ(rows[1].peak_reserved_bytes, 512);
  EXPECT_EQ(rows[1].device_memory_bytes, 1'000);
  EXPECT_EQ(rows[1].allocation_count, 2u);
  EXPECT_EQ(rows[1].free_count, 1u);
  EXPECT_EQ(rows[1].net_bytes, 200);
}

TEST(MemoryTest, WithoutAllocatorEventsThereAreNoRows) {
  RunBuilder job;
  job.Rank(0).Kernel(7, "a", 0, 1);
  const AnalysedRank rank(job);
  std::vector<MemoryRow> rows;
  ComputeMemory(rank.context, &rows);
  EXPECT_TRUE(rows.empty());
}

}  // namespace
}  // namespace lockstep::analysis
