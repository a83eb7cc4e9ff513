#include "analysis/critical_path/range_path.h"

#include <gtest/gtest.h>

#include "analysis/testing/analysed_rank.h"

namespace lockstep::analysis {
namespace {

using testing::AnalysedRank;
using testing::RunBuilder;

constexpr int64_t kUs = 1000;

int64_t BoundOf(const RangePath& path, RangeBound bound) { return path.bound_ns[static_cast<size_t>(bound)]; }
uint64_t CountOf(const RangePath& path, RangeEdgeType type) { return path.edge_counts[static_cast<size_t>(type)]; }

/// Twice: an operator that launches a kernel of 100 us.
void AddForward(RunBuilder& builder) {
  auto& rank = builder.Rank(0);
  for (int64_t i = 0; i < 2; ++i) {
    const int64_t at = i * 1000 * kUs;
    rank.Annotation(1, "forward", at, 500 * kUs);
    rank.Op(1, "aten::mm", at + 10 * kUs, 40 * kUs);
    rank.Runtime(1, "cudaLaunchKernel", at + 20 * kUs, 10 * kUs, static_cast<uint32_t>(i + 1));
    rank.Kernel(7, "gemm", at + 35 * kUs, 100 * kUs, static_cast<uint32_t>(i + 1));
  }
}

TEST(RangePathTest, PathGoesFromTheLaunchThroughTheKernel) {
  RunBuilder builder;
  AddForward(builder);
  AnalysedRank rank(builder);
  const auto path = FindRangePath(rank.context, "forward", 1);
  ASSERT_TRUE(path.has_value());
  EXPECT_EQ(path->start_ns, 1000 * kUs);
  EXPECT_EQ(path->length_ns, (10 + 15 + 100) * kUs);
  EXPECT_EQ(BoundOf(*path, RangeBound::kCpu), 10 * kUs);
  EXPECT_EQ(BoundOf(*path, RangeBound::kLaunch), 15 * kUs);
  EXPECT_EQ(BoundOf(*path, RangeBound::kCompute), 100 * kUs);
  EXPECT_EQ(path->critical_event_count, 3u);
}

TEST(RangePathTest, WholeTraceIsTheRangeWithoutAName) {
  RunBuilder builder;
  AddForward(builder);
  AnalysedRank rank(builder);
  const auto path = FindRangePath(rank.context, "", 0);
  ASSERT_TRUE(path.has_value());
  EXPECT_EQ(CountOf(*path, RangeEdgeType::kLaunchDelay), 2u);
  EXPECT_EQ(CountOf(*path, RangeEdgeType::kDependency), 1u);
  EXPECT_EQ(path->length_ns, (40 + 10 + 15 + 100) * kUs);  // The time between the operators weighs nothing.
}

TEST(RangePathTest, RangeThatIsNotThereHasNoPath) {
  RunBuilder builder;
  AddForward(builder);
  AnalysedRank rank(builder);
  EXPECT_FALSE(FindRangePath(rank.context, "backward", 0).has_value());
  EXPECT_FALSE(FindRangePath(rank.context, "forward", 2).has_value());
}

}  // namespace
}  // namespace lockstep::analysis
