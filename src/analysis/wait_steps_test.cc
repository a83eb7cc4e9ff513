#include "analysis/wait_steps.h"

#include <gtest/gtest.h>

#include "analysis/testing/collective_job.h"
#include "analysis/testing/made_collectives.h"

namespace lockstep::analysis {
namespace {

using testing::MadeCollective;

/// Two ranks with steps 5 = [0, 1000) and 6 = [1000, 2000).
testing::Job TwoSteps() {
  testing::RunBuilder builder;
  for (int32_t rank = 0; rank < 2; ++rank) {
    builder.Rank(rank).Annotation(1, "ProfilerStep#5", 0, 1000).Annotation(1, "ProfilerStep#6", 1000, 1000);
  }
  return testing::Job(builder.Build());
}

TEST(WaitStepsTest, WaitingBelongsToTheStepThatIssuedTheCollective) {
  const testing::Job job = TwoSteps();
  Collectives collectives;
  collectives.instances = {MadeCollective({100, 300}, 5), MadeCollective({1100, 1150}, 5)};
  // Issued in step 5, though rank 0 arrives in step 6.
  collectives.instances[1].members[0].issue = CollectiveIssue{900, 100, 1};
  const std::vector<WaitStep> rows = ComputeWaitSteps(job.shared, collectives);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].rank_index, 0u);
  EXPECT_EQ(rows[0].step_number, 5);
  EXPECT_EQ(rows[0].wait_ns, 250);
  EXPECT_EQ(rows[1].rank_index, 1u);
  EXPECT_EQ(rows[1].step_number, 5);
  EXPECT_EQ(rows[1].wait_ns, 0);
  EXPECT_EQ(rows[2].step_number, 6);
}

TEST(WaitStepsTest, OverlappingWaitsCountOnce) {
  const testing::Job job = TwoSteps();
  Collectives collectives;
  collectives.instances = {MadeCollective({100, 300}, 5), MadeCollective({200, 400}, 5)};
  EXPECT_EQ(ComputeWaitSteps(job.shared, collectives)[0].wait_ns, 300);
}

TEST(WaitStepsTest, ACollectiveBeforeAllStepsHasNone) {
  const testing::Job job = TwoSteps();
  Collectives collectives;
  collectives.instances = {MadeCollective({-100, -50}, 5)};
  EXPECT_TRUE(ComputeWaitSteps(job.shared, collectives).empty());
  EXPECT_FALSE(StepsOfInstances(job.shared, collectives)[0].has_value());
}

}  // namespace
}  // namespace lockstep::analysis
