#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "present/report/stages/stages_report.h"

namespace lockstep::report {
namespace {

using frontier::JobStages;
using model::RankStages;
using model::Stage;
using model::StepStages;
using model::WaitedFor;
using ::testing::HasSubstr;

/// Rank 0 computes `extra_ns` longer than the three others, and waits for nobody. Ranks 0 and 1 are a group, which
/// waits in the middle of a step; 0 and 2, 1 and 3 are groups that wait at its end.
JobStages TwoGroupsAwaitRank0(int64_t extra_ns, int32_t device_count = 0) {
  const std::vector<std::vector<std::string>> groups = {
      {"tp[0,1]", "dp[0,2]"}, {"tp[0,1]", "dp[1,3]"}, {"tp[2,3]", "dp[0,2]"}, {"tp[2,3]", "dp[1,3]"}};
  std::vector<RankStages> ranks(4);
  for (int32_t number = 0; number < 4; ++number) {
    RankStages& rank = ranks[static_cast<size_t>(number)];
    rank.rank = number;
    rank.has_device_times = number < device_count;
    rank.groups = groups[static_cast<size_t>(number)];
    for (int64_t i = 0; i < 10; ++i) {
      StepStages step{.number = i};
      step.spans = {{Stage::kForward, 20'000'000 + (number == 0 ? extra_ns : 0)},
                    {Stage::kCommunication, 1'000'000 + (number == 1 ? extra_ns : 0), WaitedFor{.group = 1}},
                    {Stage::kBackward, 40'000'000},
                    {Stage::kCommunication, 1'000'000 + (number >= 2 ? extra_ns : 0), WaitedFor{.group = 2}}};
      for (const model::StageSpan& span : step.spans) step.duration_ns += span.duration_ns;
      rank.steps.push_back(std::move(step));
    }
  }
  return frontier::AssessJob(std::move(ranks), {});
}

TEST(StagesTextTest, AllGroupsAreToldThatWaitForTheStraggler) {
  const JobStages job = TwoGroupsAwaitRank0(15'000'000);
  EXPECT_THAT(StagesSentence(job), HasSubstr("Rank 0 costs the job"));
  EXPECT_THAT(StagesWhy(job), HasSubstr("rank 2 of group dp and rank 1 of group tp wait"));
}

TEST(StagesTextTest, WhoseTimesTheyAreIsTold) {
  const auto text = [](int32_t device_count) {
    std::ostringstream out;
    WriteStagesText(TwoGroupsAwaitRank0(0, device_count), {}, out);
    return out.str();
  };
  EXPECT_THAT(text(0), HasSubstr("62.0 ms a step)"));
  EXPECT_THAT(text(1), HasSubstr("62.0 ms a step, of rank 0 on the device)"));
  EXPECT_THAT(text(3), HasSubstr("62.0 ms a step, of ranks 0-2 on the devices)"));
  EXPECT_THAT(text(4), HasSubstr("62.0 ms a step, on the devices)"));
}

}  // namespace
}  // namespace lockstep::report
