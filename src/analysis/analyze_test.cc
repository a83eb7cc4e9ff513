#include "analysis/analyze.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/breakdown.h"
#include "analysis/collectives.h"
#include "analysis/idle.h"
#include "analysis/kernels.h"
#include "analysis/launch.h"
#include "analysis/memory.h"
#include "analysis/pass.h"
#include "analysis/pass_registry.h"
#include "analysis/rank_context.h"
#include "analysis/testing/trace_builder.h"

namespace lockstep::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::RunBuilder;

model::Run SmallJob(int rank_count) {
  RunBuilder job;
  for (int32_t r = 0; r < rank_count; ++r) {
    job.Rank(r)
        .Annotation(1, "ProfilerStep#1", 0, 500)
        .Op(1, "aten::mm", 10, 50)
        .Runtime(1, "cudaLaunchKernel", 20, 5, 1)
        .Kernel(7, "gemm", 100, 50 + r, 1)
        .Kernel(8, "ncclAllReduce", 120, 60, 2)
        .Allocation(0, 5, 100, 100, 200);
  }
  return job.Build();
}

TEST(AnalyzeTest, AllPassesRunWhenNoneIsNamed) {
  model::Run run = SmallJob(2);
  const auto result = Analyze(&run, {}, {});
  ASSERT_TRUE(result);
  const auto on_request =
      std::count_if(Passes().begin(), Passes().end(), [](const PassInfo& p) { return p.kind == PassKind::kOnRequest; });
  EXPECT_EQ(PassesOf(*result).size(), Passes().size() - static_cast<size_t>(on_request));
  EXPECT_EQ(result->Get<Breakdown>().ranks.size(), 2u);
  EXPECT_EQ(result->Get<Breakdown>().steps.size(), 2u);
  EXPECT_EQ(result->Get<Kernels>().rows.size(), 4u);
  EXPECT_EQ(result->Get<Launch>().rows.size(), 2u);
  EXPECT_EQ(result->Get<Idle>().host.size(), 2u);
  EXPECT_EQ(result->step_count, 1);
  EXPECT_EQ(result->job_span_ns, 500);
}

TEST(AnalyzeTest, NeedsComeAlongAndOtherTablesStayEmpty) {
  model::Run run = SmallJob(2);
  const auto result = Analyze(&run, {}, {"imbalance"});
  ASSERT_TRUE(result);
  EXPECT_THAT(PassesOf(*result), ElementsAre("breakdown", "imbalance", "memory"));
  EXPECT_EQ(result->Get<Memory>().rows.size(), 2u);
  EXPECT_TRUE(result->Get<Kernels>().rows.empty());
  EXPECT_TRUE(result->Get<Idle>().host.empty());
  EXPECT_TRUE(result->Get<Collectives>().instances.empty());
}

TEST(AnalyzeTest, AnUnknownPassIsRefusedWithTheNearestName) {
  model::Run run = SmallJob(1);
  const auto result = Analyze(&run, {}, {"breakdwn"});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(result.error().message, HasSubstr("'breakdown'"));
}

TEST(AnalyzeTest, TheNumberOfThreadsChangesNothing) {
  std::vector<std::string> tables;
  for (const uint32_t threads : {1u, 2u, 7u}) {
    model::Run run = SmallJob(9);
    AnalysisOptions options;
    options.thread_count = threads;
    const auto result = Analyze(&run, options, {});
    ASSERT_TRUE(result);
    std::string table;
    for (const KernelRow& row : result->Get<Kernels>().rows) {
      table += std::to_string(row.rank_index) + " " + std::string(run.names[row.name]) + " " +
               std::to_string(row.total_ns) + "\n";
    }
    for (const BreakdownRow& row : result->Get<Breakdown>().ranks) {
      table += std::to_string(row.rank_index) + " " + std::to_string(row.compute_ns) + "\n";
    }
    tables.push_back(table);
  }
  EXPECT_EQ(tables[0], tables[1]);
  EXPECT_EQ(tables[0], tables[2]);
}

TEST(AnalyzeTest, ARankWithoutDeviceEventsAmongOthersIsNamed) {
  RunBuilder job;
  job.Rank(0).Kernel(7, "gemm", 0, 10);
  job.Rank(1).Op(1, "aten::mm", 0, 10);
  job.Rank(2);
  model::Run run = job.Build();
  const auto result = Analyze(&run, {}, {"breakdown"});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->Get<Breakdown>().ranks[1].basis, Basis::kCpu);
  EXPECT_EQ(result->Get<Breakdown>().ranks[2].basis, Basis::kNone);
  EXPECT_EQ(result->Get<Breakdown>().ranks[2].idle_ns, 0);
  std::vector<int32_t> named;
  for (const model::LedgerEntry& entry : run.ledger.entries()) {
    if (entry.code == "no_device_events") named.push_back(entry.rank.value_or(-1));
  }
  EXPECT_THAT(named, ElementsAre(1, 2));
}

TEST(AnalyzeTest, ACpuOnlyJobIsNotComplainedAbout) {
  RunBuilder job;
  job.Rank(0).Op(1, "aten::mm", 0, 10);
  job.Rank(1).Op(1, "aten::mm", 0, 10);
  model::Run run = job.Build();
  ASSERT_TRUE(Analyze(&run, {}, {"breakdown"}));
  for (const model::LedgerEntry& entry : run.ledger.entries()) EXPECT_NE(entry.code, "no_device_events");
}

TEST(AnalyzeTest, WindowsOfARankAddTheirSteps) {
  RunBuilder job;
  job.Rank(0, 0).Annotation(1, "ProfilerStep#1", 0, 10);
  job.Rank(0, 1).Annotation(1, "ProfilerStep#8", 100, 10).Annotation(1, "ProfilerStep#9", 110, 10);
  model::Run run = job.Build();
  const auto result = Analyze(&run, {}, {"breakdown"});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->step_count, 3);
  EXPECT_EQ(result->job_span_ns, 10);
}

TEST(AnalyzeTest, ARankThatLostItsBaseTimeDoesNotStretchTheJob) {
  RunBuilder job;
  job.Rank(0).Op(1, "aten::mm", 1'700'000'000'000'000'000, 10);
  job.Rank(1).Op(1, "aten::mm", 5, 30);
  model::Run run = job.Build();
  run.ranks[0].base_time_known = true;
  run.ranks[1].base_time_known = false;
  const auto result = Analyze(&run, {}, {"breakdown"});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->job_span_ns, 30);
}

TEST(AnalyzeTest, AnEmptyRunHasEmptyTables) {
  model::Run run;
  const auto result = Analyze(&run, {}, {});
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->Get<Breakdown>().ranks.empty());
  EXPECT_EQ(result->job_span_ns, 0);
}

}  // namespace
}  // namespace lockstep::analysis
