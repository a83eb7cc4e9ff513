#include "analysis/stragglers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

#include "analysis/testing/collective_job.h"

namespace lockstep::analysis {
namespace {

using testing::Job;
using testing::kMs;
using testing::RunBuilder;

constexpr int64_t kStep = 20 * kMs;

/// A job of steps with one all_reduce each. A rank works on the CPU and the device, then issues the collective; the
/// plan makes ranks late.
class StepJob {
 public:
  explicit StepJob(int32_t ranks) : ranks_(ranks) {}

  struct Late {
    int32_t rank = 0;
    int64_t delay_ns = 0;
    int64_t only_step = -1;
    enum class How { kLoader, kAnnotation, kNothing, kKernel, kPython } how = How::kLoader;
  };

  Job Build(int64_t steps, const std::vector<Late>& plan) {
    RunBuilder builder;
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t begin_ns = 1'000 * kMs + step * kStep;
      int64_t last_ns = 0;
      std::vector<int64_t> arrivals;
      for (int32_t rank = 0; rank < ranks_; ++rank) {
        arrivals.push_back(RunRank(builder.Rank(rank), rank, step, begin_ns, plan));
        last_ns = std::max(last_ns, arrivals.back());
      }
      for (int32_t rank = 0; rank < ranks_; ++rank) {
        const int64_t start_ns = arrivals[static_cast<size_t>(rank)];
        builder.Rank(rank).Kernel(20, testing::KernelName("allreduce"), start_ns, last_ns + kMs / 2 - start_ns,
                                  static_cast<uint32_t>(1000 + step));
      }
    }
    return Job(builder.Build());
  }

 private:
  /// Returns the arrival at the collective.
  int64_t RunRank(testing::RankBuilder& rank, int32_t number, int64_t step, int64_t begin_ns,
                  const std::vector<Late>& plan) {
    rank.WorldSize(ranks_);
    rank.Annotation(1, "ProfilerStep#" + std::to_string(step), begin_ns, kStep);
    rank.Python(1, "train.py(10): main", begin_ns, kStep);
    int64_t now_ns = begin_ns + 1'000 * (number + 1);  // nobody arrives at quite the same time
    int64_t kernel_ns = 2 * kMs;
    rank.Annotation(1, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", now_ns, 100'000);
    now_ns += 100'000;
    for (const Late& late : plan) {
      if (late.rank != number || (late.only_step >= 0 && late.only_step != step)) continue;
      switch (late.how) {
        case Late::How::kLoader:
          rank.Annotation(1, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", now_ns, late.delay_ns);
          rank.Annotation(1, "read_sample", now_ns + 1'000, late.delay_ns - 2'000);
          break;
        case Late::How::kAnnotation: rank.Annotation(1, "save_metrics", now_ns, late.delay_ns); break;
        case Late::How::kPython: rank.Python(1, "logger.py(3): flush", now_ns, late.delay_ns); break;
        case Late::How::kKernel: kernel_ns += late.delay_ns; break;
        case Late::How::kNothing: break;
      }
      if (late.how != Late::How::kKernel) now_ns += late.delay_ns;
    }
    rank.Op(1, "aten::mm", now_ns, 500'000);
    rank.Runtime(1, "cudaLaunchKernel", now_ns + 10'000, 5'000, static_cast<uint32_t>(step + 1));
    rank.Kernel(7, "gemm", now_ns + 20'000, kernel_ns, static_cast<uint32_t>(step + 1));
    now_ns += 500'000;
    rank.Runtime(1, "cudaLaunchKernel", now_ns, 5'000, static_cast<uint32_t>(1000 + step));
    return now_ns - 500'000 + 20'000 + kernel_ns;
  }

  int32_t ranks_;
};

using How = StepJob::Late::How;

StragglerRow RowOf(const Stragglers& stragglers, size_t rank_index) {
  for (const StragglerRow& row : stragglers.rows) {
    if (row.rank_index == rank_index) return row;
  }
  return {};
}

Stragglers StragglersOf(Job& job) {
  const Collectives collectives = job.Time();
  return ComputeStragglers(job.shared, collectives, ComputeWaitStates(job.shared, collectives));
}

TEST(StragglersTest, TheLateRankIsFirstAndTheOthersWaitForIt) {
  Job job = StepJob(4).Build(5, {{2, 4 * kMs}});
  const Stragglers stragglers = StragglersOf(job);
  ASSERT_EQ(stragglers.rows.size(), 4u);
  const StragglerRow& late = stragglers.rows.front();
  EXPECT_EQ(late.rank_index, 2u);
  EXPECT_EQ(late.collective_count, 5u);
  EXPECT_EQ(late.last_count, 5u);
  EXPECT_EQ(late.wait_ns, 0);
  // Rank 3 begins 1 us later than rank 2 and so waits, and delays, 1 us less.
  EXPECT_EQ(late.delay_ns, 5 * (4 * kMs - 1'000));
  EXPECT_EQ(late.wait_given_ns, 5 * (3 * 4 * kMs + 2'000 + 1'000 - 1'000));
  EXPECT_EQ(late.role, WaitRole::kNamed);
  EXPECT_TRUE(late.chronic);
  EXPECT_EQ(late.late_step_count, 5);
  EXPECT_EQ(late.waiting_rank_count, 3u);
  EXPECT_EQ(RowOf(stragglers, 0).wait_ns, 5 * (4 * kMs + 2'000));
  EXPECT_EQ(RowOf(stragglers, 0).wait_given_ns, 0);
}

TEST(StragglersTest, OneLateStepIsNotChronic) {
  Job job = StepJob(4).Build(6, {{1, 5 * kMs, 3}});
  const Stragglers stragglers = StragglersOf(job);
  EXPECT_EQ(stragglers.rows.front().rank_index, 1u);
  EXPECT_FALSE(stragglers.rows.front().chronic);
  EXPECT_EQ(stragglers.rows.front().late_step_count, 1);
  ASSERT_TRUE(stragglers.rows.front().worst_instance.has_value());
  EXPECT_EQ(*stragglers.rows.front().worst_instance, 3u);
}

TEST(StragglersTest, MarginsBelowTheClocksUncertaintyNameNobody) {
  RunBuilder builder;
  for (int64_t i = 0; i < 10; ++i) {
    for (const int32_t rank : {0, 1}) {
      builder.Rank(rank).WorldSize(2).Kernel(20, testing::KernelName("allreduce"), i * kMs + 300 * rank,
                                             10'000 - 300 * rank);
    }
  }
  Job job(builder.Build());
  const Stragglers stragglers = StragglersOf(job);
  for (const StragglerRow& row : stragglers.rows) EXPECT_EQ(row.last_count, 0u);
}

TEST(StragglersTest, WaitsThatTwoCollectivesShareCountOnce) {
  RunBuilder builder;
  for (const int32_t rank : {0, 1}) {
    auto& trace = builder.Rank(rank).WorldSize(2);
    const int64_t late_ns = rank == 1 ? 8 * kMs : 0;
    for (const int64_t stream : {20, 21}) {
      trace.Kernel(stream, testing::KernelName("allreduce"), late_ns + stream, 10 * kMs - late_ns);
    }
  }
  Job job(builder.Build());
  const Stragglers stragglers = StragglersOf(job);
  EXPECT_EQ(RowOf(stragglers, 1).wait_given_ns, 8 * kMs + 1);
  EXPECT_EQ(RowOf(stragglers, 1).delay_ns, 8 * kMs + 1);
  EXPECT_EQ(RowOf(stragglers, 0).wait_ns, 8 * kMs + 1);
}

struct CauseCase {
  How how;
  LateCause cause;
  const char* name;
};

/// What ctest shows of a case.
void PrintTo(const CauseCase& cause, std::ostream* out) { *out << cause.name; }

class LateCauseTest : public ::testing::TestWithParam<CauseCase> {};

TEST_P(LateCauseTest, WhatTheLateRankDidInsteadIsNamed) {
  Job job = StepJob(4).Build(5, {{2, 4 * kMs, -1, GetParam().how}});
  const StragglerRow late = StragglersOf(job).rows.front();
  ASSERT_EQ(late.rank_index, 2u);
  bool found = false;
  for (const LateActivity& activity : late.activities) {
    if (activity.cause != GetParam().cause || activity.name != GetParam().name) continue;
    found = true;
    EXPECT_NEAR(static_cast<double>(activity.excess_ns), 5 * 4e6, 5 * 5e3);
  }
  EXPECT_TRUE(found) << GetParam().name;
}

INSTANTIATE_TEST_SUITE_P(Causes, LateCauseTest,
                         ::testing::Values(CauseCase{How::kLoader, LateCause::kDataLoading,
                                                     "data loading: read_sample"},
                                           CauseCase{How::kAnnotation, LateCause::kHost, "save_metrics"},
                                           CauseCase{How::kPython, LateCause::kHost, "logger.py(3): flush"},
                                           CauseCase{How::kNothing, LateCause::kHost, "train.py(10): main"},
                                           CauseCase{How::kKernel, LateCause::kDeviceCompute, "compute kernels"},
                                           CauseCase{How::kLoader, LateCause::kDeviceIdle, "device idle"}));

TEST(StragglersTest, ASlowDeviceIsNotBlamedOnTheHost) {
  Job job = StepJob(4).Build(5, {{2, 4 * kMs, -1, How::kKernel}});
  const StragglerRow late = StragglersOf(job).rows.front();
  ASSERT_EQ(late.activities.size(), 1u);
  EXPECT_EQ(late.activities.front().cause, LateCause::kDeviceCompute);
}

TEST(StragglersTest, LatenessThatCarriesOverIsExplainedOnce) {
  RunBuilder builder;
  // Two collectives a step, queued on the others' stream while they compute; rank 1 loads 4 ms and is late for both.
  for (int64_t step = 0; step < 5; ++step) {
    const int64_t begin_ns = 1'000 * kMs + step * kStep;
    for (const int32_t rank : {0, 1, 2}) {
      auto& trace = builder.Rank(rank).WorldSize(3);
      const int64_t late_ns = rank == 1 ? 4 * kMs : 0;
      trace.Annotation(1, "ProfilerStep#" + std::to_string(step), begin_ns, kStep);
      trace.Annotation(1, "enumerate(DataLoader)#x.__next__", begin_ns, late_ns + 100'000);
      const auto launch = [&](int64_t at_ns, uint32_t id) {
        trace.Runtime(1, "cudaLaunchKernel", at_ns, 1'000, static_cast<uint32_t>(10 * step) + id);
      };
      const int64_t work_ns = begin_ns + late_ns + 200'000;
      for (uint32_t id = 1; id <= 4; ++id) launch(work_ns + 10'000 * id, id);
      const uint32_t first = static_cast<uint32_t>(10 * step);
      trace.Kernel(7, "gemm", work_ns + 50'000, 3 * kMs, first + 1);
      trace.Kernel(7, "gemm", work_ns + 50'000 + 3 * kMs, 2 * kMs, first + 2);
      const int64_t one_end_ns = begin_ns + 4 * kMs + 250'000 + 3 * kMs + 100'000;
      const int64_t one_ns = work_ns + 50'000 + 3 * kMs;
      const int64_t two_ns = std::max(work_ns + 50'000 + 5 * kMs, one_end_ns);
      const int64_t two_end_ns = begin_ns + 4 * kMs + 250'000 + 5 * kMs + 100'000;
      trace.Kernel(20, testing::KernelName("allreduce"), one_ns, one_end_ns - one_ns, first + 3);
      trace.Kernel(20, testing::KernelName("allreduce"), two_ns, two_end_ns - two_ns, first + 4);
    }
  }
  Job job(builder.Build());
  const StragglerRow late = StragglersOf(job).rows.front();
  EXPECT_EQ(late.rank_index, 1u);
  EXPECT_EQ(late.last_count, 10u);
  ASSERT_FALSE(late.activities.empty());
  for (const LateActivity& activity : late.activities) {
    EXPECT_NE(activity.cause, LateCause::kDeviceCompute);
    if (activity.cause == LateCause::kDataLoading) {
      EXPECT_EQ(activity.excess_ns, 5 * 4 * kMs);
    }
  }
}

TEST(StragglersTest, RanksThatAreNotLateAreNotExplained) {
  Job job = StepJob(4).Build(3, {{2, 4 * kMs}});
  const Stragglers stragglers = StragglersOf(job);
  for (size_t r : {0u, 1u, 3u}) EXPECT_TRUE(RowOf(stragglers, r).activities.empty());
}

TEST(StragglersTest, OfAGroupThatLacksATraceThoseRecordedAreCompared) {
  RunBuilder builder;
  for (const int32_t rank : {0, 1}) {
    builder.Rank(rank).WorldSize(3).Kernel(20, testing::KernelName("allreduce"), 1000 + rank * kMs,
                                           2 * kMs - rank * kMs);
  }
  Job job(builder.Build());
  const Stragglers stragglers = StragglersOf(job);
  ASSERT_EQ(stragglers.rows.size(), 2u);
  EXPECT_EQ(RowOf(stragglers, 0).wait_ns, kMs);
  EXPECT_EQ(RowOf(stragglers, 1).collective_count, 1u);
}

TEST(StragglersTest, CollectivesThatARecordingLacksDoNotCount) {
  RunBuilder builder;
  for (const int32_t rank : {0, 1, 2}) {
    builder.Rank(rank).WorldSize(3);
    if (rank < 2) {
      testing::AddCall(builder, {rank, 1000 + rank * kMs, 1000 + 2 * kMs, "allreduce", 10, "0", "[0, 1, 2]"});
    }
  }
  Job job(builder.Build());
  EXPECT_TRUE(StragglersOf(job).rows.empty());
}

}  // namespace
}  // namespace lockstep::analysis
