#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "analysis/what_if/straggler_study.h"
#include "base/nanoseconds.h"

namespace lockstep::analysis {
namespace {

/// A pipeline of two stages and `pipelines` data-parallel ranks, 1F1B over `micro_batches`, with starts as the schedule
/// gives them: forward `forward_ms`, backward twice that, transfers 1 ms from when both ends are there.
class TraceMaker {
 public:
  TraceMaker(int32_t pipelines, int32_t micro_batches) : pipelines_(pipelines), micro_batches_(micro_batches) {
    trace.types = {"backward-compute",
                   "backward-recv",
                   "backward-send",
                   "forward-compute",
                   "forward-recv",
                   "forward-send",
                   "gc",
                   "grads-reduce-scatter",
                   "optimizer"};
  }

  model::OperationTrace trace;
  std::map<std::pair<int32_t, int32_t>, int64_t> forward_ms;  // by data rank and stage; 10 where not named

  void AddStep(int64_t step) {
    std::vector<int64_t> done_ns;
    for (int32_t d = 0; d < pipelines_; ++d) AddPipeline(step, d, &done_ns);
    for (int32_t d = 0; d < pipelines_; ++d) {
      for (int32_t s = 0; s < 2; ++s) {
        const int64_t own_ns = done_ns[static_cast<size_t>(d * 2 + s)];
        // Each stage's gradients are scattered once all of its data-parallel neighbours are there.
        int64_t all_ns = 0;
        for (int32_t e = 0; e < pipelines_; ++e) all_ns = std::max(all_ns, done_ns[static_cast<size_t>(e * 2 + s)]);
        Add(step, d, s, "gc", 0, own_ns, 0);
        Add(step, d, s, "grads-reduce-scatter", 0, own_ns, all_ns + 5 * kMillisecondNs - own_ns);
        Add(step, d, s, "optimizer", 0, all_ns + 5 * kMillisecondNs, 3 * kMillisecondNs);
      }
    }
  }

  void Finish() {
    std::sort(trace.operations.begin(), trace.operations.end(),
              [](const model::Operation& a, const model::Operation& b) {
                return std::tie(a.step, a.data_rank, a.stage, a.type, a.sequence) <
                       std::tie(b.step, b.data_rank, b.stage, b.type, b.sequence);
              });
  }

 private:
  void Add(int64_t step, int32_t d, int32_t s, const std::string& type, int32_t sequence, int64_t start_ns,
           int64_t duration_ns) {
    model::Operation operation;
    operation.step = step;
    operation.data_rank = d;
    operation.stage = s;
    operation.rank = s * pipelines_ + d;
    operation.sequence = sequence;
    operation.start_ns = step * 10'000 * kMillisecondNs + start_ns;
    operation.duration_ns = duration_ns;
    operation.type =
        static_cast<uint32_t>(std::find(trace.types.begin(), trace.types.end(), type) - trace.types.begin());
    operation.global_chunk = s;
    trace.operations.push_back(operation);
  }

  int64_t Forward(int32_t d, int32_t s) const {
    const auto found = forward_ms.find({d, s});
    return (found == forward_ms.end() ? 10 : found->second) * kMillisecondNs;
  }

  // Stage 0: F0 F1 B0 F2 B1 ... ; stage 1: F0 B0 F1 B1 ...
  void AddPipeline(int64_t step, int32_t d, std::vector<int64_t>* done_ns) {
    const int64_t f0 = Forward(d, 0);
    const int64_t f1 = Forward(d, 1);
    std::vector<int64_t> forward_end(static_cast<size_t>(micro_batches_));
    std::vector<int64_t> backward_ready(static_cast<size_t>(micro_batches_));
    int64_t now0 = 0;
    int64_t now1 = 0;
    const auto forward0 = [&](int32_t i) {
      Add(step, d, 0, "forward-compute", i, now0, f0);
      now0 += f0;
      forward_end[static_cast<size_t>(i)] = now0;
    };
    // A receive is posted behind the work before the one it is for, and waits beside what runs meanwhile.
    int64_t posted1 = 0;
    int64_t posted0 = 0;
    const auto stage1 = [&](int32_t i) {
      const int64_t sent = forward_end[static_cast<size_t>(i)];
      const int64_t there = std::max(posted1, sent) + 1 * kMillisecondNs;
      Add(step, d, 1, "forward-recv", i, posted1, there - posted1);
      Add(step, d, 0, "forward-send", i, sent, there - sent);
      now1 = std::max(now1, there);
      posted1 = now1 + f1;
      Add(step, d, 1, "forward-compute", i, now1, f1);
      Add(step, d, 1, "backward-compute", i, now1 + f1, 2 * f1);
      now1 += 3 * f1;
      backward_ready[static_cast<size_t>(i)] = now1;
    };
    const auto backward0 = [&](int32_t i) {
      const int64_t sent = backward_ready[static_cast<size_t>(i)];
      const int64_t there = std::max(posted0, sent) + 1 * kMillisecondNs;
      Add(step, d, 0, "backward-recv", i, posted0, there - posted0);
      Add(step, d, 1, "backward-send", i, sent, there - sent);
      now0 = std::max(now0, there);
      posted0 = now0 + 2 * f0;
      Add(step, d, 0, "backward-compute", i, now0, 2 * f0);
      now0 += 2 * f0;
    };
    forward0(0);
    if (micro_batches_ > 1) forward0(1);
    for (int32_t i = 0; i < micro_batches_; ++i) {
      stage1(i);
      backward0(i);
      if (i + 2 < micro_batches_) forward0(i + 2);
    }
    done_ns->push_back(now0);
    done_ns->push_back(now1);
  }

  int32_t pipelines_;
  int32_t micro_batches_;
};

WhatIf Simulate(TraceMaker* maker, int64_t steps, model::Ledger* ledger) {
  for (int64_t step = 0; step < steps; ++step) maker->AddStep(step);
  maker->Finish();
  auto what_if = SimulateOperations(maker->trace, ledger);
  EXPECT_TRUE(what_if) << what_if.error().ToString();
  return *std::move(what_if);
}

const Lever* Find(const WhatIf& what_if, const std::string& id) {
  for (const Lever& lever : what_if.levers) {
    if (lever.id == id) return &lever;
  }
  return nullptr;
}

TEST(OperationWhatIfTest, TheGraphWithItsDelaysIsWhatWasObserved) {
  TraceMaker maker(2, 6);
  maker.forward_ms[{1, 0}] = 14;
  model::Ledger ledger;
  const WhatIf what_if = Simulate(&maker, 3, &ledger);
  ASSERT_EQ(what_if.steps.size(), 3);
  EXPECT_EQ(what_if.replayed_step_ns, what_if.observed_step_ns);
  EXPECT_LT(what_if.error_ratio, 0.02);
  EXPECT_TRUE(ledger.entries().empty()) << ledger.entries()[0].message;
}

TEST(OperationWhatIfTest, ABalancedJobHasNothingToWin) {
  TraceMaker maker(3, 4);
  model::Ledger ledger;
  const WhatIf what_if = Simulate(&maker, 2, &ledger);
  EXPECT_DOUBLE_EQ(what_if.study->slowdown, 1.0);
  EXPECT_EQ(Find(what_if, "no_stragglers")->gain_ns, 0);
  EXPECT_EQ(Find(what_if, "even_stages")->gain_ns, 0);
  EXPECT_EQ(what_if.study->slow_workers_ratio, std::nullopt);
  EXPECT_GT(Find(what_if, "operation_2x:backward-compute")->gain_ns, 0);
}

TEST(OperationWhatIfTest, OneSlowWorkerIsNamedAndFixed) {
  TraceMaker maker(4, 8);
  maker.forward_ms[{2, 0}] = 20;
  model::Ledger ledger;
  const WhatIf what_if = Simulate(&maker, 2, &ledger);
  EXPECT_THAT(what_if.study->slow_workers, ::testing::ElementsAre(2));
  EXPECT_GT(what_if.study->slowdown, 1.2);
  EXPECT_GT(*what_if.study->slow_workers_ratio, 0.9);
  EXPECT_LT(*what_if.study->last_stage_ratio, 0.1);
  // Made like its peers it gives the step of the job without it, which can be simulated by itself.
  TraceMaker balanced(4, 8);
  const WhatIf without = Simulate(&balanced, 2, &ledger);
  const Lever* lever = Find(what_if, "rank_at_median:2");
  ASSERT_NE(lever, nullptr);
  EXPECT_EQ(lever->step_ns, without.simulated_step_ns);
  EXPECT_EQ(lever->gain_ns, what_if.simulated_step_ns - lever->step_ns);
  EXPECT_THAT(lever->ranks, ::testing::ElementsAre(2));
}

TEST(OperationWhatIfTest, ASlowLastStageIsNamedAndEvenStagesHelp) {
  TraceMaker maker(2, 8);
  maker.forward_ms[{0, 1}] = maker.forward_ms[{1, 1}] = 16;
  model::Ledger ledger;
  const WhatIf what_if = Simulate(&maker, 2, &ledger);
  EXPECT_GT(*what_if.study->last_stage_ratio, 0.9);
  EXPECT_EQ(what_if.study->by_stage[1].name, "1");
  EXPECT_GT(what_if.study->by_stage[1].slowdown, 1.05);
  EXPECT_LT(what_if.study->by_stage[0].slowdown, 1.01);
  EXPECT_GT(Find(what_if, "even_stages")->gain_ns, 0);
  EXPECT_GT(Find(what_if, "stage_at_median:1")->gain_ns, Find(what_if, "stage_at_median:0")->gain_ns);
}

TEST(OperationWhatIfTest, LeversAreRankedByGain) {
  TraceMaker maker(2, 4);
  maker.forward_ms[{0, 0}] = 17;
  model::Ledger ledger;
  const WhatIf what_if = Simulate(&maker, 1, &ledger);
  for (size_t i = 1; i < what_if.levers.size(); ++i) {
    EXPECT_GE(what_if.levers[i - 1].gain_ns, what_if.levers[i].gain_ns);
  }
}

TEST(OperationWhatIfTest, MissingAndUnknownOperationsAreToldAndNotFatal) {
  TraceMaker maker(2, 5);
  maker.AddStep(0);
  maker.AddStep(1);
  maker.Finish();
  maker.trace.types.push_back("a-type-of-tomorrow");
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    model::OperationTrace damaged = maker.trace;
    std::erase_if(damaged.operations, [&](const model::Operation&) { return random() % 4 == 0; });
    for (model::Operation& operation : damaged.operations) {
      if (random() % 50 == 0) operation.type = 9;
      if (random() % 50 == 0) operation.start_ns -= 500 * kMillisecondNs;
    }
    model::Ledger ledger;
    const auto what_if = SimulateOperations(damaged, &ledger);
    if (!what_if) {
      EXPECT_EQ(what_if.error().code, ErrorCode::kInvalidArgument) << what_if.error().ToString();
      continue;
    }
    EXPECT_FALSE(ledger.entries().empty());
    EXPECT_GT(what_if->simulated_step_ns, 0);
  }
}

}  // namespace
}  // namespace lockstep::analysis
