#include "analysis/timeline_levels.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "analysis/testing/analysed_rank.h"

namespace lockstep::analysis {
namespace {

using testing::AnalysedRank;
using testing::RunBuilder;

int64_t Busy(const TimelineBusy& busy, size_t bucket, TimelineClass kind) {
  return busy[bucket * kTimelineClassCount + static_cast<size_t>(kind)];
}

TEST(TimelineLevelsTest, AnEventIsSharedOutAmongItsBuckets) {
  RunBuilder builder;
  builder.Rank(0).Kernel(7, "gemm", 105, 200).Memcpy(7, "Memcpy HtoD", 400, 10).Op(1, "aten::mm", 95, 10);
  const AnalysedRank rank(builder);
  const TimelineBusy busy = ComputeTimeline(rank.shared, 0, {95, 100, 4});
  EXPECT_EQ(Busy(busy, 0, TimelineClass::kCompute), 90);
  EXPECT_EQ(Busy(busy, 1, TimelineClass::kCompute), 100);
  EXPECT_EQ(Busy(busy, 2, TimelineClass::kCompute), 10);
  EXPECT_EQ(Busy(busy, 3, TimelineClass::kMemory), 10);
  EXPECT_EQ(Busy(busy, 0, TimelineClass::kHost), 10);
}

TEST(TimelineLevelsTest, StepsAreNoHostWork) {
  RunBuilder builder;
  builder.Rank(0)
      .Annotation(1, "ProfilerStep#1", 0, 1000)
      .Kernel(7, "gemm", 0, 10)
      .Runtime(1, "cudaLaunchKernel", 5, 2);
  const AnalysedRank rank(builder);
  EXPECT_EQ(Busy(ComputeTimeline(rank.shared, 0, {0, 1000, 1}), 0, TimelineClass::kHost), 2);
}

TEST(TimelineLevelsTest, WithoutADeviceTheCpuIsShown) {
  RunBuilder builder;
  builder.Rank(0).Op(1, "aten::mm", 0, 100).Annotation(2, "gloo:all_reduce", 50, 100);
  const AnalysedRank rank(builder);
  const TimelineBusy busy = ComputeTimeline(rank.shared, 0, {0, 1000, 1});
  EXPECT_EQ(Busy(busy, 0, TimelineClass::kCompute), 100);
  EXPECT_EQ(Busy(busy, 0, TimelineClass::kCommunication), 100);
}

TEST(TimelineLevelsTest, CountsEachNanosecondOfAClassOnce) {
  std::mt19937_64 random(11);
  constexpr int64_t kSpan = 1000;
  for (int round = 0; round < 20; ++round) {
    RunBuilder builder;
    std::set<int64_t> compute;
    std::set<int64_t> communication;
    for (int i = 0; i < 40; ++i) {
      const auto start_ns = static_cast<int64_t>(random() % kSpan);
      const auto duration_ns = static_cast<int64_t>(random() % 60);
      const bool is_compute = random() % 2 == 0;
      builder.Rank(0).Kernel(static_cast<int64_t>(random() % 3), is_compute ? "gemm" : "ncclDevKernel_AllReduce",
                             start_ns, duration_ns);
      for (int64_t t = start_ns; t < start_ns + duration_ns; ++t) (is_compute ? compute : communication).insert(t);
    }
    const AnalysedRank rank(builder);
    const TimelineGrid grid{-3, 37, 30};
    const TimelineBusy busy = ComputeTimeline(rank.shared, 0, grid);
    const auto expected = [&](const std::set<int64_t>& instants, size_t bucket) {
      const int64_t begin_ns = grid.origin_ns + static_cast<int64_t>(bucket) * grid.bucket_ns;
      return std::distance(instants.lower_bound(begin_ns), instants.lower_bound(begin_ns + grid.bucket_ns));
    };
    for (size_t bucket = 0; bucket < grid.bucket_count; ++bucket) {
      EXPECT_EQ(Busy(busy, bucket, TimelineClass::kCompute), expected(compute, bucket));
      EXPECT_EQ(Busy(busy, bucket, TimelineClass::kCommunication), expected(communication, bucket));
    }
  }
}

TEST(TimelineLevelsTest, CoarserBucketsHoldTheSums) {
  TimelineBusy busy(5 * kTimelineClassCount);
  for (size_t i = 0; i < busy.size(); ++i) busy[i] = static_cast<int64_t>(i);
  const TimelineBusy coarse = CoarsenTimeline(busy, 4);
  ASSERT_EQ(coarse.size(), 2 * kTimelineClassCount);
  EXPECT_EQ(coarse[0], 0 + 4 + 8 + 12);
  EXPECT_EQ(coarse[3], 3 + 7 + 11 + 15);
  EXPECT_EQ(coarse[4], 16);
}

TEST(TimelineLevelsTest, AClockOffsetMovesTheEvents) {
  RunBuilder builder;
  builder.Rank(0).Kernel(7, "gemm", 1000, 10);
  AnalysedRank rank(builder);
  rank.run.ranks[0].clock.offset_ns = 1000;
  EXPECT_EQ(Busy(ComputeTimeline(rank.shared, 0, {0, 100, 1}), 0, TimelineClass::kCompute), 10);
}

}  // namespace
}  // namespace lockstep::analysis
