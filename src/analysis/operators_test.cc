#include "analysis/operators.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "analysis/testing/analysed_rank.h"

namespace lockstep::analysis {
namespace {

using testing::AnalysedRank;
using testing::RunBuilder;

class OperatorsTest : public ::testing::Test {
 protected:
  const OperatorRow& Row(std::string_view name) {
    for (const OperatorRow& row : rows_) {
      if (run_->names[row.name] == name) return row;
    }
    ADD_FAILURE() << "no row " << name;
    static const OperatorRow kNone;
    return kNone;
  }
  void Compute(const AnalysedRank& rank) {
    run_ = &rank.run;
    rows_.clear();
    ComputeOperators(rank.context, &rows_);
  }

  RunBuilder job_;
  const model::Run* run_ = nullptr;
  std::vector<OperatorRow> rows_;
};

TEST_F(OperatorsTest, SelfTimeLeavesOutDirectChildren) {
  job_.Rank(0).Op(1, "linear", 0, 100).Op(1, "addmm", 10, 50).Op(1, "view", 20, 10).Op(1, "view", 70, 10);
  const AnalysedRank rank(job_);
  Compute(rank);
  EXPECT_EQ(Row("linear").cpu_total_ns, 100);
  EXPECT_EQ(Row("linear").cpu_self_ns, 40);
  EXPECT_EQ(Row("addmm").cpu_self_ns, 40);
  EXPECT_EQ(Row("view").count, 2u);
  EXPECT_EQ(Row("view").cpu_self_ns, 20);
}

TEST_F(OperatorsTest, SelfTimeLeavesOutCallsOfTheRuntimeOnce) {
  job_.Rank(0)
      .Op(1, "addmm", 0, 100)
      .Op(1, "view", 50, 10)
      .Runtime(1, "cudaLaunchKernel", 10, 20)
      .Driver(1, "cuLaunchKernel", 12, 10)  // made by the call around it
      .Runtime(1, "cudaGetDevice", 52, 3)
      .Runtime(1, "cudaDeviceSynchronize", 95, 50);
  const AnalysedRank rank(job_);
  Compute(rank);
  EXPECT_EQ(Row("addmm").cpu_self_ns, 100 - 10 - 20 - 5);
  EXPECT_EQ(Row("view").cpu_self_ns, 7);
}

TEST_F(OperatorsTest, DeviceTimeBelongsToTheInnermostRangeAroundTheLaunch) {
  job_.Rank(0)
      .Op(1, "linear", 0, 100)
      .Op(1, "addmm", 10, 50)
      .Runtime(1, "cudaLaunchKernel", 20, 5, 1)
      .Runtime(1, "cudaMemcpyAsync", 70, 5, 2)
      .Runtime(1, "cudaLaunchKernel", 200, 5, 3)  // in no range
      .Kernel(7, "gemm", 100, 1'000, 1)
      .Memcpy(7, "Memcpy", 2'000, 300, 2)
      .Kernel(7, "lone", 3'000, 77, 3);
  const AnalysedRank rank(job_);
  Compute(rank);
  EXPECT_EQ(Row("addmm").device_self_ns, 1'000);
  EXPECT_EQ(Row("addmm").device_total_ns, 1'000);
  EXPECT_EQ(Row("linear").device_self_ns, 300);
  EXPECT_EQ(Row("linear").device_total_ns, 1'300);
}

TEST_F(OperatorsTest, ALaunchAtTheStartOfARangeIsInsideAndAtItsEndIsNot) {
  job_.Rank(0)
      .Op(1, "a", 0, 10)
      .Op(1, "b", 10, 10)
      .Runtime(1, "cudaLaunchKernel", 10, 5, 1)
      .Kernel(7, "gemm", 100, 8, 1);
  const AnalysedRank rank(job_);
  Compute(rank);
  EXPECT_EQ(Row("a").device_self_ns, 0);
  EXPECT_EQ(Row("b").device_self_ns, 8);
}

TEST_F(OperatorsTest, LaunchesOfOtherThreadsDoNotCount) {
  job_.Rank(0).Op(1, "a", 0, 100).Runtime(2, "cudaLaunchKernel", 10, 5, 1).Kernel(7, "gemm", 100, 8, 1);
  const AnalysedRank rank(job_);
  Compute(rank);
  EXPECT_EQ(Row("a").device_total_ns, 0);
}

TEST_F(OperatorsTest, EveryDeviceEventOfAGraphLaunchCounts) {
  job_.Rank(0)
      .Op(1, "replay", 0, 100)
      .Runtime(1, "cudaGraphLaunch", 10, 5, 9)
      .Kernel(7, "a", 100, 8, 9)
      .Kernel(8, "b", 100, 4, 9);
  const AnalysedRank rank(job_);
  Compute(rank);
  EXPECT_EQ(Row("replay").device_self_ns, 12);
}

TEST_F(OperatorsTest, RecursionCountsEveryCall) {
  job_.Rank(0)
      .Op(1, "f", 0, 100)
      .Op(1, "f", 10, 50)
      .Runtime(1, "cudaLaunchKernel", 20, 5, 1)
      .Kernel(7, "gemm", 100, 8, 1);
  const AnalysedRank rank(job_);
  Compute(rank);
  EXPECT_EQ(Row("f").count, 2u);
  EXPECT_EQ(Row("f").cpu_total_ns, 150);
  EXPECT_EQ(Row("f").cpu_self_ns, 100 - 5);
  EXPECT_EQ(Row("f").device_self_ns, 8);
  EXPECT_EQ(Row("f").device_total_ns, 16);
}

TEST_F(OperatorsTest, ACollectiveOfACpuBackendIsNobodysParent) {
  job_.Rank(0).Op(1, "outer", 0, 100).Annotation(1, "gloo:all_reduce", 10, 500).Op(1, "inner", 20, 30);
  const AnalysedRank rank(job_);
  Compute(rank);
  EXPECT_EQ(Row("outer").cpu_self_ns, 70);
  EXPECT_EQ(Row("gloo:all_reduce").cpu_self_ns, 500);
  EXPECT_EQ(Row("gloo:all_reduce").count, 1u);
}

TEST_F(OperatorsTest, AChildThatOutlivesItsParentTakesOnlyTheSharedTime) {
  job_.Rank(0).Op(1, "parent", 0, 10).Op(1, "child", 8, 10).Op(1, "next", 18, 2);
  const AnalysedRank rank(job_);
  Compute(rank);
  EXPECT_EQ(Row("parent").cpu_self_ns, 8);
  EXPECT_EQ(Row("child").cpu_self_ns, 10);
  EXPECT_EQ(Row("next").cpu_self_ns, 2);
}

TEST_F(OperatorsTest, RowsAreOrderedByDeviceThenCpuTimeThenName) {
  job_.Rank(0)
      .Op(1, "b", 0, 10)
      .Op(1, "a", 10, 10)
      .Op(1, "c", 20, 20)
      .Op(1, "d", 50, 1)
      .Runtime(1, "cudaLaunchKernel", 50, 1, 1)
      .Kernel(7, "gemm", 60, 1, 1);
  const AnalysedRank rank(job_);
  Compute(rank);
  ASSERT_EQ(rows_.size(), 4u);
  EXPECT_EQ(run_->names[rows_[0].name], "d");
  EXPECT_EQ(run_->names[rows_[1].name], "c");
  EXPECT_EQ(run_->names[rows_[2].name], "a");
}

}  // namespace
}  // namespace lockstep::analysis
