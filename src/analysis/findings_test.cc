#include "analysis/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/analysis_result.h"
#include "analysis/breakdown.h"
#include "analysis/collectives.h"
#include "analysis/finding.h"
#include "analysis/finding_context.h"
#include "analysis/idle.h"
#include "analysis/imbalance.h"
#include "analysis/launch.h"
#include "analysis/memory.h"
#include "analysis/rank_context.h"
#include "analysis/stragglers.h"
#include "analysis/testing/collective_job.h"
#include "analysis/wait_states/wait_states.h"

namespace lockstep::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Job;
using testing::kMs;
using testing::RunBuilder;

/// Tables of a device job of four ranks and ten steps of 10 ms each, with nothing to complain of.
struct HealthyJob {
  HealthyJob() : job(Build()) {
    result.step_count = 10;
    result.job_span_ns = 100 * kMs;
    for (size_t r = 0; r < 4; ++r) {
      BreakdownRow row;
      row.rank_index = r;
      row.basis = Basis::kDevice;
      row.span_ns = 100 * kMs;
      row.compute_ns = 90 * kMs;
      row.busy_ns = 98 * kMs;
      row.communication_ns = 20 * kMs;
      row.overlapped_communication_ns = 12 * kMs;
      row.exposed_communication_ns = 8 * kMs;
      row.idle_ns = 2 * kMs;
      result.Edit<Breakdown>().ranks.push_back(row);
      for (int64_t step = 0; step < 10; ++step) {
        row.step_number = step;
        result.Edit<Breakdown>().steps.push_back(row);
      }
      row.step_number.reset();
      StragglerRow straggler;
      straggler.rank_index = r;
      straggler.collective_count = 10;
      straggler.wait_ns = kMs / 10;
      result.Edit<Stragglers>().rows.push_back(straggler);
    }
  }

  static model::Run Build() {
    RunBuilder builder;
    for (int32_t rank = 0; rank < 4; ++rank) builder.Rank(rank).WorldSize(4).Kernel(7, "gemm", 0, 100);
    return builder.Build();
  }
  std::vector<Finding> Find() { return ComputeFindings(job.shared, result); }

  Job job;
  AnalysisResult result;
};

const Finding* Get(const std::vector<Finding>& findings, std::string_view id) {
  for (const Finding& finding : findings) {
    if (finding.id == id) return &finding;
  }
  return nullptr;
}

const Evidence* EvidenceOf(const Finding& finding, std::string_view name) {
  for (const Evidence& evidence : finding.evidence) {
    if (evidence.name == name) return &evidence;
  }
  return nullptr;
}

TEST(FindingsTest, AHealthyJobHasNone) {
  HealthyJob healthy;
  EXPECT_TRUE(healthy.Find().empty());
}

/// An all_reduce in every step, in which `late` come by so much after the others.
void AddLateness(HealthyJob& job, const std::vector<std::pair<size_t, int64_t>>& late) {
  for (int64_t step = 0; step < 10; ++step) {
    CollectiveInstance instance;
    instance.synchronising = instance.complete = true;
    instance.name = "all_reduce";
    instance.group = "0";
    int64_t last_ns = -1;
    for (size_t r = 0; r < 4; ++r) {
      CollectiveMember member;
      member.rank_index = r;
      member.arrival_ns = step * 10 * kMs;
      for (const auto& [rank, delay_ns] : late) {
        if (rank == r) member.arrival_ns += delay_ns;
      }
      if (member.arrival_ns > last_ns) {
        last_ns = member.arrival_ns;
        instance.last_rank_index = r;
      }
      instance.members.push_back(member);
    }
    for (CollectiveMember& member : instance.members) member.wait_ns = last_ns - member.arrival_ns;
    instance.transfer_ns = 1000;
    job.result.Edit<Collectives>().instances.push_back(instance);
  }
  for (BreakdownRow& row : job.result.Edit<Breakdown>().ranks) row.exposed_communication_ns = 25 * kMs;
}

/// Says who is behind the waiting, and what of it each is behind.
void Name(HealthyJob& job, const std::vector<std::pair<size_t, int64_t>>& culprits,
          RootCause cause = RootCause::kKernel) {
  WaitStates& states = job.result.Edit<WaitStates>();
  for (const auto& [rank_index, wait_ns] : culprits) {
    RootCauseRow row;
    row.cause = cause;
    row.rank_index = rank_index;
    row.rank_indices = {rank_index};
    row.name = "gemm";
    row.direct_wait_ns = wait_ns;
    row.wait_ratio = 0.5;
    row.delay_ns = 10 * kMs;
    row.pattern = WaitPattern::kChronic;
    states.culprits.push_back({.rank_index = rank_index,
                               .rank_indices = {rank_index},
                               .causes = {states.causes.size()},
                               .wait_ns = wait_ns,
                               .wait_ratio = 0.5,
                               .chance = 1e-4,
                               .delay_ns = row.delay_ns});
    states.causes.push_back(std::move(row));
  }
  job.result.Edit<Stragglers>() = ComputeStragglers(job.job.shared, job.result.Get<Collectives>(), states);
}

TEST(FindingsTest, ALateRankIsNamedWithItsGainPerStep) {
  HealthyJob job;
  AddLateness(job, {{2, kMs}});
  Name(job, {{2, 30 * kMs}});
  const std::vector<Finding> findings = job.Find();
  const Finding* straggler = Get(findings, "straggler");
  ASSERT_NE(straggler, nullptr);
  EXPECT_THAT(straggler->ranks, ElementsAre(2));
  EXPECT_EQ(straggler->gain_ns_per_step, kMs);
  EXPECT_EQ(straggler->severity, FindingSeverity::kCritical);
  EXPECT_THAT(straggler->title, HasSubstr("Rank 2 holds the others up"));
  EXPECT_THAT(straggler->evidence.front().text, HasSubstr("waited 30.0 ms in all for rank 2"));
  EXPECT_FALSE(straggler->advice.empty());
}

TEST(FindingsTest, WaitingBesideComputationIsNoGain) {
  HealthyJob job;
  AddLateness(job, {{2, kMs}});
  Name(job, {{2, 30 * kMs}});
  job.result.Edit<Breakdown>().ranks[0].exposed_communication_ns = 4 * kMs;
  const std::vector<Finding> findings = job.Find();
  ASSERT_NE(Get(findings, "straggler"), nullptr);
  EXPECT_EQ(Get(findings, "straggler")->gain_ns_per_step, 4 * kMs / 10);
}

TEST(FindingsTest, TwoRanksThatAreLateTogetherAreBothNamedAndTheGainIsThatOfBoth) {
  HealthyJob job;
  AddLateness(job, {{1, 2 * kMs}, {3, 2 * kMs + kMs / 4}});
  Name(job, {{3, 42 * kMs}, {1, 40 * kMs}});
  const std::vector<Finding> findings = job.Find();
  const Finding* straggler = Get(findings, "straggler");
  ASSERT_NE(straggler, nullptr);
  // Rank 1 is never last; both are thought away.
  EXPECT_THAT(straggler->ranks, ElementsAre(3, 1));
  EXPECT_EQ(straggler->gain_ns_per_step, 2 * kMs + kMs / 4);
}

TEST(FindingsTest, WhoIsLastIsNoStragglerUnlessTheCausesOfWaitingNameIt) {
  HealthyJob job;
  AddLateness(job, {{2, kMs}});
  Name(job, {});
  const std::vector<Finding> findings = job.Find();
  EXPECT_EQ(Get(findings, "straggler"), nullptr);
  const Finding* spread = Get(findings, "spread_waiting");
  ASSERT_NE(spread, nullptr);  // 0.75 ms of 10 ms a step.
  EXPECT_EQ(spread->severity, FindingSeverity::kInfo);
  EXPECT_TRUE(spread->ranks.empty());
}

TEST(FindingsTest, ALittleWaitingThatIsNobodysIsNotWorthAWord) {
  HealthyJob job;
  AddLateness(job, {{2, kMs / 4}});
  Name(job, {});
  EXPECT_EQ(Get(job.Find(), "spread_waiting"), nullptr);
}

TEST(FindingsTest, WaitingThatBeganBeforeTheRecordingIsSaidToHave) {
  HealthyJob job;
  AddLateness(job, {{2, kMs}});
  Name(job, {});
  job.result.Edit<WaitStates>().late_start = {.wait_ns = 20 * kMs, .wait_ratio = 0.66, .spread_ns = 9 * kMs};
  const std::vector<Finding> findings = job.Find();
  EXPECT_EQ(Get(findings, "spread_waiting"), nullptr);
  ASSERT_NE(Get(findings, "late_start"), nullptr);
  EXPECT_THAT(Get(findings, "late_start")->title, HasSubstr("up to 9.00 ms apart"));
}

TEST(FindingsTest, ASlowLinkIsNamedAsALinkAndNoRankAsAStraggler) {
  HealthyJob job;
  AddLateness(job, {{2, kMs}});
  Name(job, {{2, 30 * kMs}}, RootCause::kSlowLink);
  const std::vector<Finding> findings = job.Find();
  EXPECT_EQ(Get(findings, "straggler"), nullptr);
  const Finding* link = Get(findings, "slow_link");
  ASSERT_NE(link, nullptr);
  EXPECT_EQ(link->title, "The link of rank 2 is slow; no rank's own work is at fault");
  EXPECT_EQ(link->gain_ns_per_step, kMs);
  EXPECT_DOUBLE_EQ(link->gain_ratio.value_or(0), 0.1);
}

TEST(FindingsTest, ASlowLinkBesideALateRankDoesNotClearTheRank) {
  HealthyJob job;
  AddLateness(job, {{2, kMs}});
  Name(job, {{1, 30 * kMs}}, RootCause::kSlowLink);
  Name(job, {{2, 20 * kMs}});
  const std::vector<Finding> findings = job.Find();
  ASSERT_NE(Get(findings, "straggler"), nullptr);
  EXPECT_THAT(Get(findings, "straggler")->ranks, ElementsAre(2));
  ASSERT_NE(Get(findings, "slow_link"), nullptr);
  EXPECT_EQ(Get(findings, "slow_link")->title, "The link of rank 1 is slow");
}

TEST(FindingsTest, WhoOnlyPassesLatenessOnDoesNotLessenTheGain) {
  HealthyJob job;
  AddLateness(job, {{1, 2 * kMs}, {3, 2 * kMs + kMs / 4}});
  Name(job, {{3, 42 * kMs}});
  job.result.Edit<WaitStates>().causes.front().passed_on_by = {1};
  const std::vector<Finding> findings = job.Find();
  const Finding* straggler = Get(findings, "straggler");
  ASSERT_NE(straggler, nullptr);
  EXPECT_THAT(straggler->ranks, ElementsAre(3));
  EXPECT_EQ(straggler->gain_ns_per_step, 2 * kMs + kMs / 4);
}

TEST(FindingsTest, ExposedCommunicationGainsWhatTheLeastExposedRankHas) {
  HealthyJob job;
  for (size_t r = 0; r < 4; ++r)
    job.result.Edit<Breakdown>().ranks[r].exposed_communication_ns = (30 + 5 * static_cast<int64_t>(r)) * kMs;
  const std::vector<Finding> findings = job.Find();
  const Finding* exposed = Get(findings, "exposed_communication");
  ASSERT_NE(exposed, nullptr);
  EXPECT_THAT(exposed->ranks, ElementsAre(3, 2, 1, 0));
  EXPECT_EQ(exposed->gain_ns_per_step, 3 * kMs);
  EXPECT_THAT(exposed->evidence[1].text, HasSubstr("rank 3: 45.0 ms exposed of 20.0 ms communication"));
}

TEST(FindingsTest, TheThresholdOfExposedCommunicationCanBeSet) {
  HealthyJob job;
  job.job.shared.options.communication_ratio_threshold = 0.05;
  EXPECT_NE(Get(job.Find(), "exposed_communication"), nullptr);
}

TEST(FindingsTest, ADeviceThatWaitsForLaunchesIsHostBound) {
  HealthyJob job;
  for (size_t r = 0; r < 4; ++r) {
    job.result.Edit<Breakdown>().ranks[r].idle_ns = 40 * kMs;
    job.result.Edit<Idle>().rows.push_back({r, {0}, {7}, 36 * kMs, 4 * kMs, 0});
    job.result.Edit<Idle>().host.push_back({r, 5 * kMs, 1 * kMs, 30 * kMs, 4 * kMs});
  }
  const std::vector<Finding> findings = job.Find();
  const Finding* bound = Get(findings, "host_bound");
  ASSERT_NE(bound, nullptr);
  EXPECT_EQ(bound->gain_ns_per_step, 36 * kMs / 10);
  EXPECT_EQ(bound->ranks.size(), 4u);
  EXPECT_EQ(Get(findings, "kernel_launch_gaps"), nullptr);
}

TEST(FindingsTest, ShortGapsThatAddUpAreNamed) {
  HealthyJob job;
  for (size_t r = 0; r < 4; ++r) {
    job.result.Edit<Breakdown>().ranks[r].idle_ns = 15 * kMs;
    job.result.Edit<Idle>().rows.push_back({r, {0}, {7}, 0, 15 * kMs, 0});
  }
  const std::vector<Finding> findings = job.Find();
  EXPECT_NE(Get(findings, "kernel_launch_gaps"), nullptr);
  EXPECT_EQ(Get(findings, "host_bound"), nullptr);
}

TEST(FindingsTest, OneRankThatComputesMoreIsAnImbalance) {
  HealthyJob job;
  job.result.Edit<Breakdown>().ranks[1].compute_ns = 110 * kMs;
  job.result.Edit<Imbalance>() = ComputeImbalance(job.job.shared, job.result.Get<Breakdown>(), {});
  const std::vector<Finding> findings = job.Find();
  const Finding* imbalance = Get(findings, "imbalance");
  ASSERT_NE(imbalance, nullptr);
  EXPECT_THAT(imbalance->ranks, ElementsAre(1));
  EXPECT_EQ(imbalance->gain_ns_per_step, 15 * kMs / 10);
}

TEST(FindingsTest, TracesThatAreNotOneJobAreNotCompared) {
  HealthyJob job;
  job.result.Edit<Breakdown>().ranks[1].compute_ns = 110 * kMs;
  job.result.Edit<Imbalance>() = ComputeImbalance(job.job.shared, job.result.Get<Breakdown>(), {});
  for (model::RankTrace& rank : job.job.run.ranks) rank.rank_source = model::RankSource::kOrder;
  EXPECT_EQ(Get(job.Find(), "imbalance"), nullptr);
}

TEST(FindingsTest, WindowsThatHoldMoreStepsAreNotMoreWork) {
  HealthyJob job;
  job.result.Edit<Breakdown>().ranks[1].compute_ns = 110 * kMs;
  job.result.Edit<Imbalance>() = ComputeImbalance(job.job.shared, job.result.Get<Breakdown>(), {});
  std::vector<BreakdownRow>& steps = job.result.Edit<Breakdown>().steps;
  steps.erase(std::find_if(steps.begin(), steps.end(), [](const auto& row) { return row.rank_index == 2; }));
  EXPECT_EQ(Get(job.Find(), "imbalance"), nullptr);
}

TEST(FindingsTest, UnevenMemoryIsAWarningWithoutGain) {
  HealthyJob job;
  for (size_t r = 0; r < 4; ++r) {
    MemoryRow row;
    row.rank_index = r;
    row.device = 0;
    row.peak_allocated_bytes = r == 3 ? 16'000'000'000 : 8'000'000'000;
    job.result.Edit<Memory>().rows.push_back(row);
  }
  job.result.Edit<Imbalance>() =
      ComputeImbalance(job.job.shared, job.result.Get<Breakdown>(), job.result.Get<Memory>().rows);
  const std::vector<Finding> findings = job.Find();
  const Finding* memory = Get(findings, "memory_imbalance");
  ASSERT_NE(memory, nullptr);
  EXPECT_THAT(memory->ranks, ElementsAre(3));
  EXPECT_FALSE(memory->gain_ns_per_step.has_value());
  EXPECT_THAT(memory->evidence.front().text, HasSubstr("rank 3 16.0 GB, mean 10.0 GB"));
}

TEST(FindingsTest, MissingTracesAreSaid) {
  HealthyJob job;
  job.job.run.ranks.pop_back();
  job.result.Edit<Breakdown>().ranks.pop_back();
  const std::vector<Finding> findings = job.Find();
  ASSERT_NE(Get(findings, "missing_ranks"), nullptr);
  EXPECT_EQ(Get(findings, "missing_ranks")->title, "1 of 4 ranks has no trace here");
  EXPECT_EQ(EvidenceOf(*Get(findings, "missing_ranks"), "unrecorded_wait_ns"), nullptr);
}

TEST(FindingsTest, OfAJobThatLacksTracesItIsSaidWhoseWaitingIsToldAndHowLongItWaitsForTheOthers) {
  HealthyJob job;
  AddLateness(job, {{2, 2 * kMs}});
  Name(job, {{2, 60 * kMs}});
  ASSERT_EQ(EvidenceOf(*Get(job.Find(), "straggler"), "recorded_rank_count"), nullptr);
  job.job.run.ranks.pop_back();
  job.result.Edit<Breakdown>().ranks.pop_back();
  for (CollectiveInstance& instance : job.result.Edit<Collectives>().instances) {
    instance.members.pop_back();
    instance.complete = false;
    instance.some_unrecorded = true;
  }
  job.result.Edit<Collectives>().instances.front().unrecorded_wait_ns = 5 * kMs;
  const std::vector<Finding> findings = job.Find();
  const Evidence* recorded = EvidenceOf(*Get(findings, "straggler"), "recorded_rank_count");
  ASSERT_NE(recorded, nullptr);
  EXPECT_EQ(recorded->text, "told from the 3 of 4 ranks that have a trace; one of the others may be late as well");
  const Evidence* waited = EvidenceOf(*Get(findings, "missing_ranks"), "unrecorded_wait_ns");
  ASSERT_NE(waited, nullptr);
  EXPECT_EQ(
      waited->text,
      "in 1 of the 10 collectives that lack a rank's trace such a rank came last; rank 0 waited longest for them, "
      "500 us per step");
}

TEST(FindingsTest, FindingsComeByGainThenSeverityThenId) {
  HealthyJob job;
  AddLateness(job, {{2, kMs / 2}});
  for (size_t r = 0; r < 4; ++r) {
    job.result.Edit<Breakdown>().ranks[r].exposed_communication_ns = 60 * kMs;
    job.result.Edit<Launch>().rows.push_back({});
    job.result.Edit<Launch>().rows.back().rank_index = r;
    job.result.Edit<Launch>().rows.back().launch_count = 1000;
    job.result.Edit<Launch>().rows.back().short_kernel_count = 900;
  }
  const std::vector<Finding> findings = job.Find();
  EXPECT_TRUE(std::is_sorted(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return a.gain_ns_per_step.value_or(-1) > b.gain_ns_per_step.value_or(-1);
  }));
  EXPECT_EQ(findings.front().id, "exposed_communication");
  EXPECT_EQ(findings.back().id, "short_kernels");
}

TEST(FindingsTest, ARunWithoutRanksOrTablesHasNone) {
  model::Run run;
  RunContext shared;
  shared.run = &run;
  EXPECT_TRUE(ComputeFindings(shared, {}).empty());
  HealthyJob job;
  job.result = {};
  EXPECT_TRUE(job.Find().empty());
}

TEST(FindingTextTest, TimesHaveThreeDigitsAndAUnit) {
  EXPECT_EQ(TimeText(46'812'345), "46.8 ms");
  EXPECT_EQ(TimeText(999), "999 ns");
  EXPECT_EQ(TimeText(1'234), "1.23 us");
  EXPECT_EQ(TimeText(2'500'000'000), "2.50 s");
  EXPECT_EQ(PercentText(0.004), "0.4 %");
  EXPECT_EQ(PercentText(0.37), "37 %");
  EXPECT_EQ(RanksText({4}), "rank 4");
  EXPECT_EQ(RanksText({4, 2}), "ranks 4 and 2");
  EXPECT_EQ(RanksText({1, 2, 3}), "ranks 1, 2 and 3");
}

}  // namespace
}  // namespace lockstep::analysis
