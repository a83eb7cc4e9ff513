#include "analysis/stage_comparison/stage_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>

namespace lockstep::stage_comparison {
namespace {

using comparison::Change;
using model::Stage;
using model::StageSummary;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Windows of `steps_each` steps: forward takes `forward_ms`, backward 20 ms, each step scattered by `noise` of its
/// time.
StageSummary RunOf(double forward_ms, double noise, unsigned seed, int window_count = 60, int steps_each = 2) {
  std::mt19937 random(seed);
  StageSummary run{.source = "run", .world_size = 2, .ranks = {0, 1}, .verdict = "Even."};
  run.facts = {.workload = {{"model", "gpt2"}}, .exit_status = 0};
  for (int w = 0; w < window_count; ++w) {
    model::SummaryWindow window{
        .first_step = int64_t{w} * steps_each, .last_step = int64_t{w + 1} * steps_each - 1, .step_count = steps_each};
    for (int64_t step = window.first_step; step <= window.last_step; ++step) {
      const double share = 1 + noise * (static_cast<double>(random()) / 4294967296.0 - 0.5);
      const auto forward_ns = static_cast<int64_t>(forward_ms * 1e6 * share);
      const auto backward_ns = static_cast<int64_t>(20e6 * share);
      At(window.frontier_ns, Stage::kForward) += forward_ns;
      At(window.frontier_ns, Stage::kBackward) += backward_ns;
      window.ns += forward_ns + backward_ns;
      run.steps.push_back({step, forward_ns + backward_ns});
    }
    run.windows.push_back(window);
  }
  return run;
}

StageComparison Compared(StageSummary a, StageSummary b) { return Compare(std::move(a), std::move(b), {}); }

TEST(StageComparisonTest, ASlowerStageIsNamedWithItsTime) {
  const StageComparison compared = Compared(RunOf(20, 0.1, 1), RunOf(26, 0.1, 2));
  EXPECT_EQ(compared.verdict.change, Change::kSlower);
  EXPECT_NEAR(*compared.step.ratio(), 0.15, 0.01);
  EXPECT_THAT(compared.verdict.sentence, AllOf(HasSubstr("% slower"), HasSubstr("because forward grew by")));
  EXPECT_EQ(compared.stages[static_cast<size_t>(Stage::kForward)].change, Change::kSlower);
  EXPECT_EQ(compared.stages[static_cast<size_t>(Stage::kBackward)].change, Change::kNone);
  EXPECT_EQ(compared.stages[static_cast<size_t>(Stage::kInput)].change, Change::kNone);
  EXPECT_EQ(Decide(compared, 0.05).result, GateResult::kFailed);
  EXPECT_EQ(Decide(compared, 0.5).result, GateResult::kPassed) << "slower, but by less than is allowed";
}

TEST(StageComparisonTest, WarmUpIsATenthInWholeWindows) {
  StageSummary slow_start = RunOf(20, 0.1, 1);
  for (int w = 0; w < 6; ++w) slow_start.windows[static_cast<size_t>(w)].ns *= 10;
  const StageComparison compared = Compared(slow_start, RunOf(20, 0.1, 2, 20, 1));
  EXPECT_EQ(compared.a.warm_up_steps, 12) << "of 120";
  EXPECT_EQ(compared.a.step_count, 108);
  EXPECT_EQ(compared.b.warm_up_steps, 5) << "at least, of 20";
  EXPECT_NEAR(compared.a.mean_step_ns, 40e6, 1e6);
  EXPECT_NEAR(compared.a.median_step_ns, 40e6, 1e6);
  EXPECT_EQ(compared.verdict.change, Change::kNone);
  const StageComparison chosen = Compare(RunOf(20, 0, 1), RunOf(20, 0, 2), {.first_step = 10, .last_step = 20});
  EXPECT_EQ(chosen.a.step_count, 10) << "window 20 to 21 reaches beyond";
  EXPECT_EQ(Compare(RunOf(20, 0, 1), RunOf(20, 0, 2), {.skip_steps = 1}).a.warm_up_steps, 2) << "the window it is in";
}

/// What the gate says of 200 pairs of runs, of which the second's forward takes `ratio` of the step longer.
std::array<int, 3> Answers(double ratio, double noise, double allowed, int windows) {
  std::array<int, 3> counts = {};
  for (unsigned i = 0; i < 200; ++i) {
    const StageComparison compared =
        Compared(RunOf(20, noise, 2 * i, windows), RunOf(20 + 40 * ratio, noise, 2 * i + 1, windows));
    ++counts[static_cast<size_t>(Decide(compared, allowed).result)];
  }
  return counts;
}

TEST(StageComparisonTest, EqualRunsDoNotFailAndSlowerOnesDo) {
  EXPECT_EQ(Answers(0, 0.1, 0.05, 60), (std::array{200, 0, 0}));
  EXPECT_EQ(Answers(0.1, 0.1, 0.05, 60), (std::array{0, 200, 0}));
  EXPECT_EQ(Answers(0.02, 0.1, 0.05, 60), (std::array{200, 0, 0})) << "slower, certainly by less";
}

TEST(StageComparisonTest, ShortOrNoisyRunsAreUndecided) {
  EXPECT_EQ(Answers(0.1, 0.1, 0.05, 6), (std::array{0, 0, 200})) << "one window is left behind the warm-up";
  const std::array<int, 3> noisy = Answers(0, 1.0, 0.05, 20);
  EXPECT_GT(noisy[2], 190);
  EXPECT_LE(noisy[1], 4) << "false alarms at 99 %";
  const Gate gate = Decide(Compared(RunOf(20, 1, 1, 20), RunOf(20, 1, 2, 20)), 0.05);
  EXPECT_THAT(gate.sentence, AllOf(HasSubstr("cannot tell at 5.0 %"), HasSubstr("longer runs")));
  EXPECT_THAT(Decide(Compared(RunOf(20, 0, 1, 4), RunOf(20, 0, 2, 4)), 0.05).sentence, HasSubstr("too few windows"));
}

std::string RefusalOf(const StageSummary& a, const StageSummary& b) {
  const Status status = CheckComparable(a, b);
  if (status) return "";
  EXPECT_EQ(status.error().code, ErrorCode::kFailedPrecondition);
  return status.error().message;
}

TEST(StageComparisonTest, OnlyRunsOfOneWorkloadOnAsManyRanksAreCompared) {
  const StageSummary a = RunOf(20, 0, 1);
  StageSummary b = a;
  EXPECT_EQ(RefusalOf(a, b), "");
  b.facts.workload = {{"model", "llama"}, {"batch", "8"}};
  EXPECT_THAT(RefusalOf(a, b),
              AllOf(HasSubstr("workload model: 'gpt2' in A, 'llama' in B"),
                    HasSubstr("workload batch: not declared in A, '8' in B"), HasSubstr("--workload")));
  b = a;
  b.world_size = 3;
  b.ranks = {0, 1, 2};
  EXPECT_THAT(RefusalOf(a, b), AllOf(HasSubstr("world size: 2 in A, 3 in B"), Not(HasSubstr("whole"))));
}

TEST(StageComparisonTest, ARunThatDidNotCompleteIsNoMeasure) {
  const StageSummary a = RunOf(20, 0, 1);
  StageSummary b = a;
  b.facts.exit_status = 137;
  EXPECT_THAT(RefusalOf(a, b), HasSubstr("B did not complete: its command ended with status 137 (signal 9)"));
  b = a;
  b.running_ranks = {1};
  EXPECT_THAT(RefusalOf(b, a), HasSubstr("A did not complete: 1 of 2 ranks, the first of them rank 1"));
  b = a;
  b.ranks = {0};
  EXPECT_THAT(RefusalOf(a, b), HasSubstr("B is not whole: 1 of its 2 ranks left stages"));
  b = a;
  b.facts.exit_status.reset();
  EXPECT_EQ(RefusalOf(a, b), "") << "nobody saw it end, and all ranks ended in order";
  EXPECT_THAT(Compared(a, b).verdict.notes, ::testing::Contains(HasSubstr("how B's command ended is not known")));
}

TEST(StageComparisonTest, RunsWithoutStepsAreUndecidedNotWrong) {
  StageSummary nothing = RunOf(20, 0, 1);
  nothing.windows.clear();
  nothing.steps.clear();
  const StageComparison compared = Compared(nothing, RunOf(20, 0, 1));
  EXPECT_EQ(compared.verdict.change, Change::kUnknown);
  EXPECT_THAT(compared.verdict.sentence, HasSubstr("no step with a known length in A"));
  EXPECT_EQ(Decide(compared, 0).result, GateResult::kUndecided);
}

}  // namespace
}  // namespace lockstep::stage_comparison
