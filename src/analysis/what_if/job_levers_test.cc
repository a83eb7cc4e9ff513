#include "analysis/what_if/job_levers.h"

#include <gmock/gmock.h>

#include <set>
#include <string>
#include <vector>

#include "analysis/testing/collective_job.h"

namespace lockstep::analysis {
namespace {

using testing::Job;
using testing::kMs;
using testing::RankBuilder;
using testing::RunBuilder;

constexpr const char* kReduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";

/// A step of one compute kernel and one collective, launched early; the host waits for both and ends 10 us later.
void AddStep(RunBuilder& job, int32_t rank, int32_t world, int64_t gemm_ns, int64_t reduce_end_ns) {
  RankBuilder& builder = job.Rank(rank).WorldSize(world);
  const int64_t reduce_ns = 100'000 + gemm_ns + 1000;
  builder.Annotation(1, "ProfilerStep#3", 0, reduce_end_ns + 10'000);
  builder.Op(1, "aten::mm", 10'000, 80'000);
  builder.Runtime(1, "cudaLaunchKernel", 20'000, 1000, 1);
  builder.Runtime(1, "cudaLaunchKernelExC", 40'000, 1000, 2);
  builder.Runtime(1, "cudaDeviceSynchronize", 95'000, reduce_end_ns - 95'000, 3);
  builder.Kernel(7, "gemm", 100'000, gemm_ns, 1);
  builder.Kernel(20, kReduce, reduce_ns, reduce_end_ns - reduce_ns, 2);
}

WhatIf Simulate(RunBuilder& builder, model::Ledger* ledger, uint32_t threads = 1, const LeverOptions& options = {}) {
  Job job(builder.Build());
  const Collectives collectives = job.Time();
  std::vector<RankGraphs> graphs;
  for (size_t rank = 0; rank < job.run.ranks.size(); ++rank) {
    graphs.push_back(MapJobGraph(MakeRankContext(job.shared, rank)));
  }
  return SimulateJob(job.run, collectives, graphs, threads, ledger, options);
}

const Lever& Get(const WhatIf& what_if, const std::string& id) {
  for (const Lever& lever : what_if.levers) {
    if (lever.id == id) return lever;
  }
  ADD_FAILURE() << "no lever " << id;
  static const Lever none;
  return none;
}

/// Four ranks, of which rank 2 computes 5 ms instead of 2; the collective takes 1 ms from its arrival on.
WhatIf OneSlowRank(model::Ledger* ledger, uint32_t threads = 1, const LeverOptions& options = {}) {
  RunBuilder builder;
  const int64_t end_ns = 100'000 + 5 * kMs + 1000 + kMs;
  for (int32_t rank = 0; rank < 4; ++rank) AddStep(builder, rank, 4, rank == 2 ? 5 * kMs : 2 * kMs, end_ns);
  return Simulate(builder, ledger, threads, options);
}

TEST(JobLeversTest, AnUnchangedJobTakesWhatWasObserved) {
  model::Ledger ledger;
  const WhatIf what_if = OneSlowRank(&ledger);
  ASSERT_EQ(what_if.steps.size(), 1U);
  EXPECT_EQ(what_if.simulated_step_ns, what_if.observed_step_ns);
  EXPECT_EQ(what_if.error_ratio, 0);
  EXPECT_EQ(what_if.study, std::nullopt);
  EXPECT_TRUE(ledger.entries().empty());
}

TEST(JobLeversTest, ASlowRankAtTheOthersMedianGivesTheStepWithoutIt) {
  model::Ledger ledger;
  const WhatIf what_if = OneSlowRank(&ledger);
  EXPECT_EQ(Get(what_if, "rank_at_median:2").gain_ns, 3 * kMs);
  EXPECT_EQ(Get(what_if, "no_stragglers").gain_ns, 3 * kMs);
  EXPECT_EQ(Get(what_if, "rank_at_median:0").gain_ns, 0);
  EXPECT_EQ(Get(what_if, "rank_at_median:2").ranks, std::vector<int32_t>{2});
}

TEST(JobLeversTest, CommunicationAndKernelsCanBeMadeFaster) {
  model::Ledger ledger;
  const WhatIf what_if = OneSlowRank(&ledger);
  EXPECT_EQ(Get(what_if, "communication_free").gain_ns, kMs);
  EXPECT_EQ(Get(what_if, "communication_2x").gain_ns, kMs / 2);
  EXPECT_EQ(Get(what_if, "perfect_overlap").gain_ns, kMs);
  EXPECT_EQ(Get(what_if, "kernel_2x:gemm").gain_ns, 5 * kMs / 2);
  for (size_t i = 1; i < what_if.levers.size(); ++i) {
    EXPECT_GE(what_if.levers[i - 1].gain_ns, what_if.levers[i].gain_ns);
  }
}

TEST(JobLeversTest, HowMuchFasterCanBeChosen) {
  model::Ledger ledger;
  const WhatIf what_if = OneSlowRank(&ledger, 1, {.speedup = 4});
  EXPECT_EQ(Get(what_if, "communication_4x").gain_ns, 3 * kMs / 4);
  EXPECT_EQ(Get(what_if, "kernel_4x:gemm").gain_ns, 15 * kMs / 4);
  EXPECT_EQ(Get(what_if, "kernel_4x:gemm").title, "gemm 4 times as fast");
}

TEST(JobLeversTest, StagesCanBeMadeEven) {
  model::Ledger ledger;
  // Ranks 0 and 1 are the first stage, with 2 ms of work each; 2 and 3 the second, with 5 and 2.
  const WhatIf what_if = OneSlowRank(&ledger, 1, {.stages = {{0, {0, 1}}, {1, {2, 3}}}});
  // On average 2.75 ms instead of 3.5: rank 2 takes 5 x 2.75 / 3.5.
  EXPECT_EQ(Get(what_if, "even_stages").gain_ns, 5 * kMs - 3'928'571);
  EXPECT_EQ(Get(what_if, "stage_at_median:1").gain_ns, 3 * kMs);
  EXPECT_EQ(Get(what_if, "stage_at_median:1").ranks, (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(Get(what_if, "stage_at_median:0").gain_ns, 0);
}

TEST(JobLeversTest, OnlyWhatIsAskedForIsSimulated) {
  model::Ledger ledger;
  const WhatIf what_if = OneSlowRank(&ledger, 1, {.only = std::set<std::string>{"rank_at_median:2", "no_such_lever"}});
  ASSERT_EQ(what_if.levers.size(), 1U);
  EXPECT_EQ(what_if.levers[0].id, "rank_at_median:2");
  EXPECT_EQ(what_if.levers[0].gain_ns, 3 * kMs);
  EXPECT_TRUE(OneSlowRank(&ledger, 1, {.only = std::set<std::string>{}}).levers.empty());
}

TEST(JobLeversTest, ThreadsChangeNothing) {
  model::Ledger ledger;
  const WhatIf one = OneSlowRank(&ledger, 1);
  const WhatIf many = OneSlowRank(&ledger, 8);
  ASSERT_EQ(one.levers.size(), many.levers.size());
  for (size_t i = 0; i < one.levers.size(); ++i) {
    EXPECT_EQ(one.levers[i].id, many.levers[i].id);
    EXPECT_EQ(one.levers[i].step_ns, many.levers[i].step_ns);
  }
}

TEST(JobLeversTest, AStragglersGainIsTheSimulatedOne) {
  model::Ledger ledger;
  const WhatIf what_if = OneSlowRank(&ledger);
  Finding late;
  late.id = "straggler";
  late.ranks = {2};
  late.gain_ns_per_step = kMs;
  Finding other;
  other.id = "imbalance";
  other.gain_ns_per_step = 2 * kMs;
  std::vector<Finding> findings = {other, late};
  TakeSimulatedGains(what_if, &findings);
  EXPECT_EQ(findings[0].id, "straggler");
  EXPECT_EQ(findings[0].gain_ns_per_step, 3 * kMs);
  EXPECT_EQ(findings[1].gain_ns_per_step, 2 * kMs);
}

TEST(JobLeversTest, OneRankHasNoPeers) {
  RunBuilder builder;
  AddStep(builder, 0, 1, 2 * kMs, 4 * kMs);
  model::Ledger ledger;
  const WhatIf what_if = Simulate(builder, &ledger);
  for (const Lever& lever : what_if.levers) EXPECT_EQ(lever.id.find("rank"), std::string::npos) << lever.id;
  EXPECT_FALSE(what_if.levers.empty());
}

}  // namespace
}  // namespace lockstep::analysis
