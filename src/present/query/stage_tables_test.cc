#include <gtest/gtest.h>

#include "present/query/testing/asked_run.h"

namespace lockstep::query {
namespace {

using testing::AskedRun;
using testing::RandomRun;

TEST(StageTablesTest, PartsAddUpToTheStepAndIncrementsToTheJob) {
  AskedRun asked(RandomRun(4, 5));
  EXPECT_EQ(asked.AskOne("SELECT count(DISTINCT rank) FROM stages"), "3");
  int64_t steps_ns = 0;
  for (const model::StepStages& step : asked.run().stages->at(1).steps) steps_ns += step.duration_ns;
  EXPECT_EQ(asked.AskOne("SELECT sum(duration_ns) FROM stages WHERE rank = 1"), fmt::format("{}", steps_ns));
  const model::StepStages& second = asked.run().stages->at(1).steps.at(1);
  EXPECT_EQ(asked.AskOne("SELECT min(trace_start_ns) FROM stages WHERE rank = 1 AND step = 1"),
            fmt::format("{}", second.start_ns));
  EXPECT_EQ(asked.AskOne("SELECT max(trace_start_ns + duration_ns) FROM stages WHERE rank = 1 AND step = 1"),
            fmt::format("{}", second.start_ns + second.duration_ns));
  EXPECT_EQ(asked.AskOne("SELECT sum(increment_ns) FROM stage_frontier"),
            asked.AskOne("SELECT total_ns FROM stage_scopes WHERE scope = 'job'"));
  EXPECT_EQ(asked.AskOne("SELECT count(*) FROM stage_frontier WHERE increment_ns <= 0"), "0");
}

TEST(StageTablesTest, StartsAreOnTheClockOfTheRanksTrace) {
  AskedRun asked(RandomRun(4, 5));
  for (model::RankTrace& trace : asked.run().ranks) trace.clock.offset_ns = 100 * trace.rank.value;
  EXPECT_EQ(asked.AskOne("SELECT group_concat(DISTINCT trace_start_ns - start_ns) FROM stages"), "0,100,200");
}

TEST(StageTablesTest, WithoutStagesTheyAreEmpty) {
  AskedRun asked(model::Run{});
  EXPECT_EQ(asked.AskOne("SELECT count(*) FROM stages"), "0");
  EXPECT_EQ(asked.AskOne("SELECT count(*) FROM stage_frontier"), "0");
  EXPECT_EQ(asked.AskOne("SELECT count(*) FROM stage_agreement"), "0");
}

}  // namespace
}  // namespace lockstep::query
