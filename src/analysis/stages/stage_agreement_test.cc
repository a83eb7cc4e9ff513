#include "analysis/stages/stage_agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace lockstep::analysis {
namespace {

using model::Stage;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kStepStart = 1'700'000'000'000'000'000;
constexpr int64_t kFastStep = 10'000'000;
constexpr int64_t kSlowStep = 15'000'000;

/// Two ranks that meet at the end of each step; rank 1 is 5 ms late in `slow_stage` from step `slow_from` on.
std::vector<model::RankStages> LateRanks(int64_t step_count, int64_t slow_from, Stage slow_stage = Stage::kForward) {
  std::vector<model::RankStages> ranks(2);
  int64_t start_ns = kStepStart;
  for (int64_t number = 0; number < step_count; ++number) {
    const bool is_slow = number >= slow_from;
    for (size_t i = 0; i < ranks.size(); ++i) {
      ranks[i].rank = static_cast<int32_t>(i);
      const bool is_late = is_slow && i == 1;
      model::StepStages step{.number = number, .start_ns = start_ns};
      for (const auto& [stage, usual_ns] : {std::pair(Stage::kInput, 1'000'000), std::pair(Stage::kForward, 3'000'000),
                                            std::pair(Stage::kBackward, 5'000'000)}) {
        step.spans.push_back({stage, usual_ns + (is_late && stage == slow_stage ? 5'000'000 : 0)});
      }
      step.spans.push_back({Stage::kCommunication, is_slow && i == 0 ? 6'000'000 : 1'000'000});
      for (const model::StageSpan& span : step.spans) step.duration_ns += span.duration_ns;
      ranks[i].steps.push_back(std::move(step));
    }
    start_ns += is_slow ? kSlowStep : kFastStep;
  }
  return ranks;
}

std::shared_ptr<const frontier::JobStages> Assess(std::vector<model::RankStages> ranks) {
  return std::make_shared<const frontier::JobStages>(frontier::AssessJob(std::move(ranks), {}));
}
std::shared_ptr<const frontier::JobStages> LateJob(int64_t step_count, int64_t slow_from,
                                                   Stage slow_stage = Stage::kForward) {
  return Assess(LateRanks(step_count, slow_from, slow_stage));
}

/// Both ranks' traces cover steps [begin, end) of a job whose steps all take so long before.
CoveredTimes Cover(int64_t begin, int64_t end, int64_t step_ns) {
  const std::pair<int64_t, int64_t> span(kStepStart + begin * step_ns, kStepStart + end * step_ns);
  return {{0, {span}}, {1, {span}}};
}
CoveredTimes CoverFast(int64_t begin, int64_t end) { return Cover(begin, end, kFastStep); }

const StageAgreementRow& RowOf(const std::vector<StageAgreementRow>& rows, std::string_view question) {
  static const StageAgreementRow kNone{"none"};
  for (const StageAgreementRow& row : rows) {
    if (row.question == question) return row;
  }
  return kNone;
}

TEST(StagesBesideTest, ScopesAddUpToTheJobAndAStepIsTracedWhoseMiddleIsCovered) {
  CoveredTimes covered = CoverFast(10, 16);
  covered[0].front().second += kFastStep / 2 - 1;  // The middle of step 16 is left out by a nanosecond.
  const StagesBeside stages = AssessStages(LateJob(40, 20), true, covered);
  ASSERT_THAT(stages.scopes, SizeIs(3));
  EXPECT_EQ(stages.Scope("traced")->account.step_count, 6);
  EXPECT_EQ(stages.Scope("traced")->first_step(), 10);
  EXPECT_EQ(stages.Scope("traced")->last_step(), 15);
  EXPECT_EQ(stages.Scope("traced")->account.total_ns + stages.Scope("not_traced")->account.total_ns,
            stages.Scope("job")->account.total_ns);
  EXPECT_EQ(stages.Scope("job")->rank(), 1);
  EXPECT_EQ(stages.Scope("job")->stage(), "forward");
  EXPECT_EQ(stages.Scope("traced")->rank(), std::nullopt);
  int64_t job_ns = 0;
  for (const StageShareRow& share : stages.shares) job_ns += share.job_ns;
  EXPECT_NEAR(static_cast<double>(job_ns), static_cast<double>(stages.job->account.total_ns) / 40, 10);
}

TEST(StagesBesideTest, InTracedStepsTooWhoseGroupWaitsIsNamed) {
  std::vector<model::RankStages> ranks = LateRanks(40, 20);
  for (model::RankStages& rank : LateRanks(40, 40)) {
    rank.rank += 2;
    ranks.push_back(std::move(rank));
  }
  for (model::RankStages& rank : ranks) {
    rank.groups = {rank.rank < 2 ? "tp[0,1]" : "tp[2,3]"};
    for (model::StepStages& step : rank.steps) step.spans.back().waited_for.group = 1;
  }
  const std::vector<std::pair<int64_t, int64_t>> covered = {
      {kStepStart + 20 * kFastStep + kSlowStep, kStepStart + 20 * kFastStep + 7 * kSlowStep}};
  const StagesBeside stages = AssessStages(Assess(std::move(ranks)), true, {{1, covered}});
  EXPECT_EQ(stages.Scope("job")->rank(), 1);
  ASSERT_NE(stages.Scope("traced"), nullptr);
  EXPECT_EQ(stages.Scope("traced")->account.step_count, 6);
  EXPECT_EQ(stages.Scope("traced")->rank(), 1);
  EXPECT_EQ(stages.Scope("traced")->stage(), "forward");
  EXPECT_EQ(stages.Scope("traced")->verdict.cost_ns, 6 * 5'000'000);
}

TEST(StageAgreementTest, BothNameTheSameRankAndStage) {
  const StagesBeside stages = AssessStages(LateJob(40, 0), true, Cover(10, 16, kSlowStep));
  TraceAnswer trace{.rank = 1, .stage = Stage::kForward, .cause = "Net.forward"};
  trace.step_ns = 15'400'000;
  trace.exposed_communication_ns = 3'600'000;  // Of both ranks 6 ms and 1 ms: 3.5 ms.
  trace.input_ns = 3'000'000;
  const auto rows = CompareWithTrace(stages, trace);
  ASSERT_THAT(rows, SizeIs(5));
  EXPECT_EQ(RowOf(rows, "straggler").agrees, true);
  EXPECT_EQ(RowOf(rows, "straggler").sentence,
            "Both name rank 1: the stage files in forward, the traces in Net.forward.");
  EXPECT_EQ(RowOf(rows, "steps").agrees, true);
  EXPECT_EQ(RowOf(rows, "step_time").agrees, true);
  EXPECT_EQ(RowOf(rows, "exposed_communication").agrees, true);
  EXPECT_EQ(RowOf(rows, "exposed_communication").stages_ns, 3'500'000);
  EXPECT_EQ(RowOf(rows, "input").agrees, false);
  EXPECT_THAT(RowOf(rows, "input").sentence, HasSubstr("1.00 ms for input"));
}

TEST(StageAgreementTest, TimesAreThoseOfTheRanksThatAreTraced) {
  CoveredTimes covered = Cover(10, 16, kSlowStep);
  covered.erase(1);
  TraceAnswer trace{.exposed_communication_ns = 6'000'000, .rank_count = 1};
  const auto rows = CompareWithTrace(AssessStages(LateJob(40, 0), true, covered), trace);
  EXPECT_EQ(RowOf(rows, "exposed_communication").stages_ns, 6'000'000);
  EXPECT_EQ(RowOf(rows, "exposed_communication").agrees, true);
}

TEST(StageAgreementTest, ATraceOfTheStepsBeforeARankGrewSlowIsSaidToBeThat) {
  const StagesBeside stages = AssessStages(LateJob(40, 20), true, CoverFast(10, 16));
  const auto rows = CompareWithTrace(stages, {});
  EXPECT_EQ(RowOf(rows, "straggler").agrees, false);
  EXPECT_EQ(
      RowOf(rows, "straggler").sentence,
      "The stage files name rank 1 in forward, the traces no rank. The traces cover 6 of 40 steps (10 to 15), and "
      "in these rank 1 was not slow: its forward cost 0.0 % of their time, 20 % of the job's.");
  EXPECT_EQ(RowOf(rows, "steps").agrees, false);
  EXPECT_THAT(RowOf(rows, "steps").sentence, AllOf(HasSubstr("less than the others"), HasSubstr("rest of the job")));
}

TEST(StageAgreementTest, AnotherRankOrStageIsNamedWithWhatTheStagesSayOfIt) {
  const StagesBeside stages = AssessStages(LateJob(40, 0), true, Cover(10, 16, kSlowStep));
  auto rows = CompareWithTrace(stages, {.rank = 0, .cause = "gemm"});
  EXPECT_EQ(rows.front().agrees, false);
  EXPECT_THAT(rows.front().sentence, AllOf(HasSubstr("name rank 1 in forward, the traces rank 0 in gemm."),
                                           HasSubstr("rank 1 cost 33 % of the traced steps, rank 0 0.0 %: they tell")));
  rows = CompareWithTrace(stages, {.rank = 1, .stage = Stage::kOptimizer, .cause = "Optimizer.step#SGD.step"});
  EXPECT_EQ(rows.front().agrees, false);
  EXPECT_EQ(rows.front().trace_stage, "optimizer");
  EXPECT_THAT(rows.front().sentence, HasSubstr("its forward cost 33 % of the traced steps and its optimizer 0.0 %"));
}

TEST(StageAgreementTest, TheTracesNameNobodyWhereTheStagesDo) {
  const StagesBeside stages = AssessStages(LateJob(40, 0), true, Cover(10, 16, kSlowStep));
  EXPECT_THAT(CompareWithTrace(stages, {.rank_count = 2}).front().sentence,
              HasSubstr("too: the traces lack the collectives"));
  EXPECT_THAT(CompareWithTrace(stages, {.has_device = true, .rank_count = 2}).front().sentence,
              HasSubstr("what devices did"));
  EXPECT_THAT(CompareWithTrace(stages, {.rank_count = 1}).front().sentence, HasSubstr("traces of 1 of 2 ranks alone."));
}

TEST(StageAgreementTest, OnlyTheTracesNameARank) {
  const StagesBeside stages = AssessStages(LateJob(40, 40), true, CoverFast(10, 16));
  const auto rows = CompareWithTrace(stages, {.rank = 1});
  EXPECT_EQ(rows.front().agrees, false);
  EXPECT_EQ(
      rows.front().sentence,
      "The stage files name no rank, the traces rank 1. By the stage files it cost 0.0 % of the traced steps, too "
      "little to be told from chance.");
}

TEST(StageAgreementTest, OnADeviceWaitsOfTheProgramAndOfTheDeviceAreNotCompared) {
  const StagesBeside stages = AssessStages(LateJob(40, 40), true, CoverFast(10, 16));
  TraceAnswer trace{.has_device = true};
  trace.exposed_communication_ns = 9'000'000;
  const auto rows = CompareWithTrace(stages, trace);
  EXPECT_EQ(RowOf(rows, "exposed_communication").agrees, std::nullopt);
  EXPECT_THAT(RowOf(rows, "exposed_communication").sentence, HasSubstr("different times on a device"));
  EXPECT_EQ(RowOf(rows, "straggler").sentence, "Neither names a rank.");
}

TEST(StageAgreementTest, FilesOfAnotherRunAreSaidToBeThat) {
  const StagesBeside stages = AssessStages(LateJob(40, 0), true, {{0, {{0, 1000}}}});
  const auto rows = CompareWithTrace(stages, {});
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_THAT(rows.back().sentence, HasSubstr("another run"));
  EXPECT_EQ(rows.back().agrees, std::nullopt);
}

TEST(StageAgreementTest, WithoutATraceThereIsNothingToCompare) {
  EXPECT_THAT(CompareWithTrace(AssessStages(LateJob(40, 0), false, {}), {}), IsEmpty());
  EXPECT_THAT(CompareWithTrace({}, {}), IsEmpty());
}

TEST(StageAgreementTest, NamesOfATraceStandForStages) {
  EXPECT_EQ(StageOfName("DistributedDataParallel.forward"), Stage::kForward);
  EXPECT_EQ(StageOfName("Optimizer.step#SGD.step"), Stage::kOptimizer);
  EXPECT_EQ(StageOfName("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"), Stage::kInput);
  EXPECT_EQ(StageOfName("autograd::engine::evaluate_function: MulBackward0"), Stage::kBackward);
  EXPECT_EQ(StageOfName("checkpoint"), Stage::kCheckpoint);
  EXPECT_EQ(StageOfName("aten::mm"), std::nullopt);
}

}  // namespace
}  // namespace lockstep::analysis
