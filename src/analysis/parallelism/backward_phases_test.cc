#include "analysis/parallelism/backward_phases.h"

#include <gtest/gtest.h>

#include "analysis/testing/trace_builder.h"

namespace lockstep::analysis {
namespace {

/// A pass of autograd in [100, 200), inside of what the program marks, which waits until 500 for its collective.
model::Run MarkedRun(bool has_device, bool has_autograd = true) {
  testing::RunBuilder job;
  testing::RankBuilder& rank = job.Rank(0);
  rank.Op(1, "aten::linear", 0, 90);
  rank.Annotation(1, "backward", 95, 405);
  if (has_autograd) rank.Op(2, "autograd::engine::evaluate_function: MmBackward0", 100, 100);
  if (has_device) rank.Kernel(7, "gemm", 120, 100, 1);
  return job.Build();
}

int64_t EndOfPass(const model::Run& run) {
  RunContext shared;
  shared.run = &run;
  shared.is_communication.resize(run.names.size());
  const auto phases = FindBackwardPhases(MakeRankContext(shared, 0));
  return phases.size() == 1 ? phases.front().host.end_ns : -1;
}

TEST(BackwardPhasesTest, WhereThereIsNoDeviceAMarkThatWaitsDoesNotMakeThePassLonger) {
  EXPECT_EQ(EndOfPass(MarkedRun(false)), 200);
  EXPECT_EQ(EndOfPass(MarkedRun(true)), 500);
}

TEST(BackwardPhasesTest, AMarkAloneIsThePass) { EXPECT_EQ(EndOfPass(MarkedRun(false, false)), 500); }

}  // namespace
}  // namespace lockstep::analysis
