#include "analysis/name_totals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

KernelRow Kernel(size_t rank, NameId name, uint64_t count, int64_t total_ns, int64_t min_ns, int64_t max_ns) {
  KernelRow row;
  row.rank_index = rank;
  row.name = name;
  row.count = count;
  row.total_ns = total_ns;
  row.min_ns = min_ns;
  row.max_ns = max_ns;
  return row;
}

TEST(NameTotalsTest, RanksAreAddedUpAndKeptApart) {
  model::NameTable names;
  const NameId gemm = names.Intern("gemm");
  const NameId add = names.Intern("add");
  const auto totals = TotalKernels({Kernel(0, gemm, 2, 100, 40, 60), Kernel(0, add, 1, 5, 5, 5),
                                    Kernel(1, gemm, 3, 300, 90, 120), Kernel(2, gemm, 1, 20, 20, 20)},
                                   names);
  ASSERT_EQ(totals.size(), 2u);
  EXPECT_EQ(totals[0].name, gemm);
  EXPECT_EQ(totals[0].count, 6u);
  EXPECT_EQ(totals[0].total_ns, 420);
  EXPECT_EQ(totals[0].min_ns, 20);
  EXPECT_EQ(totals[0].max_ns, 120);
  EXPECT_DOUBLE_EQ(totals[0].mean_ns(), 70);
  EXPECT_THAT(totals[0].spread.by_rank, ElementsAre(Pair(0, 100), Pair(1, 300), Pair(2, 20)));
  EXPECT_THAT(totals[0].spread.quantiles_ns, ElementsAre(20, 60, 100, 200, 300));
  EXPECT_EQ(totals[0].spread.min_rank_index, 2u);
  EXPECT_EQ(totals[0].spread.max_rank_index, 1u);
  EXPECT_THAT(totals[1].spread.quantiles_ns, ElementsAre(5, 5, 5, 5, 5));
}

TEST(NameTotalsTest, KernelsOfOneNameAndTwoKindsAreTwoRows) {
  model::NameTable names;
  const NameId name = names.Intern("copy");
  KernelRow other = Kernel(0, name, 1, 10, 10, 10);
  other.kind = KernelKind::kMemcpy;
  EXPECT_EQ(TotalKernels({Kernel(0, name, 1, 10, 10, 10), other}, names).size(), 2u);
}

TEST(NameTotalsTest, EqualTotalsAreSortedByText) {
  model::NameTable names;
  const NameId b = names.Intern("b");
  const NameId a = names.Intern("a");
  const auto totals = TotalKernels({Kernel(0, b, 1, 10, 10, 10), Kernel(0, a, 1, 10, 10, 10)}, names);
  EXPECT_EQ(totals[0].name, a);
}

TEST(NameTotalsTest, AnOperatorWithoutDeviceTimeIsSpreadByItsCpuTime) {
  model::NameTable names;
  const NameId mm = names.Intern("aten::mm");
  const NameId load = names.Intern("load");
  const auto totals = TotalOperators(
      {{0, mm, 1, 10, 20, 300, 300}, {0, load, 2, 7, 7, 0, 0}, {1, mm, 1, 11, 21, 500, 500}, {1, load, 2, 9, 9, 0, 0}},
      names);
  ASSERT_EQ(totals.size(), 2u);
  EXPECT_EQ(totals[0].device_self_ns, 800);
  EXPECT_EQ(totals[0].cpu_self_ns, 21);
  EXPECT_THAT(totals[0].spread.by_rank, ElementsAre(Pair(0, 300), Pair(1, 500)));
  EXPECT_THAT(totals[1].spread.by_rank, ElementsAre(Pair(0, 7), Pair(1, 9)));
}

TEST(NameTotalsTest, SumsBeyondTheTypeStayAtItsEnd) {
  model::NameTable names;
  const NameId name = names.Intern("x");
  const auto totals = TotalKernels({Kernel(0, name, 1, INT64_MAX, 1, 1), Kernel(1, name, 1, INT64_MAX, 1, 1)}, names);
  EXPECT_EQ(totals[0].total_ns, INT64_MAX);
}

}  // namespace
}  // namespace lockstep::analysis
