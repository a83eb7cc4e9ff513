#include "analysis/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "analysis/testing/analysed_rank.h"

namespace lockstep::analysis {
namespace {

using testing::AnalysedRank;
using testing::RunBuilder;

TEST(KernelsTest, EventsOfANameAreSummed) {
  RunBuilder job;
  job.Rank(0).Kernel(7, "gemm", 0, 10).Kernel(8, "gemm", 0, 20).Kernel(7, "gemm", 30, 60).Kernel(7, "relu", 100, 5);
  const AnalysedRank rank(job);
  std::vector<KernelRow> rows;
  ComputeKernels(rank.context, &rows);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rank.run.names[rows[0].name], "gemm");
  EXPECT_EQ(rows[0].count, 3u);
  EXPECT_EQ(rows[0].total_ns, 90);
  EXPECT_EQ(rows[0].min_ns, 10);
  EXPECT_EQ(rows[0].max_ns, 60);
  EXPECT_DOUBLE_EQ(rows[0].mean_ns, 30);
  EXPECT_NEAR(rows[0].stddev_ns, std::sqrt((400.0 + 100.0 + 900.0) / 2), 1e-9);
  EXPECT_EQ(rows[1].stddev_ns, 0);
}

TEST(KernelsTest, KindsComeFromCategoryAndName) {
  RunBuilder job;
  job.Rank(0)
      .Kernel(7, "ncclKernel", 0, 4)
      .Memcpy(7, "Memcpy HtoD", 4, 3)
      .Memset(7, "Memset", 7, 2)
      .Kernel(7, "x", 9, 1);
  const AnalysedRank rank(job);
  std::vector<KernelRow> rows;
  ComputeKernels(rank.context, &rows);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].kind, KernelKind::kCommunication);
  EXPECT_EQ(rows[1].kind, KernelKind::kMemcpy);
  EXPECT_EQ(rows[2].kind, KernelKind::kMemset);
  EXPECT_EQ(rows[3].kind, KernelKind::kCompute);
}

TEST(KernelsTest, EqualTotalsAreOrderedByName) {
  RunBuilder job;
  job.Rank(0).Kernel(7, "b", 0, 10).Kernel(7, "a", 10, 10);
  const AnalysedRank rank(job);
  std::vector<KernelRow> rows;
  ComputeKernels(rank.context, &rows);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rank.run.names[rows[0].name], "a");
}

TEST(KernelsTest, SumsOfAbsurdDurationsStayInRange) {
  RunBuilder job;
  auto& builder = job.Rank(0);
  for (int i = 0; i < 4; ++i) builder.Kernel(7, "huge", 0, INT64_MAX / 2);
  const AnalysedRank rank(job);
  std::vector<KernelRow> rows;
  ComputeKernels(rank.context, &rows);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].total_ns, INT64_MAX);
}

}  // namespace
}  // namespace lockstep::analysis
