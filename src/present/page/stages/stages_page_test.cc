#include "present/page/stages/stages_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace lockstep::page {
namespace {

using model::RankStages;
using model::Stage;
using model::StepStages;
using ::testing::HasSubstr;

/// Three ranks, 100 steps; the last waits for its input from step 60 on, and its process grows.
frontier::JobStages JobOfPage() {
  std::vector<RankStages> ranks(3);
  for (size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].rank = static_cast<int32_t>(i);
    ranks[i].host = "node0";
    for (int64_t number = 0; number < 100; ++number) {
      const int64_t extra_ns = number >= 60 ? 8'000'000 : 0;
      const bool is_slow = i == 2;
      StepStages step{.number = number, .duration_ns = 13'000'000 + extra_ns};
      step.spans = {{Stage::kInput, 2'000'000 + (is_slow ? extra_ns : 0)},
                    {Stage::kBackward, 10'000'000},
                    {Stage::kCommunication, 1'000'000 + (is_slow ? 0 : extra_ns)}};
      ranks[i].steps.push_back(std::move(step));
      ranks[i].memory.Take(model::kResidentMemoryCounter, number * 1'000'000'000,
                           4e8 + (is_slow ? 1e7 : 0) * static_cast<double>(number));
    }
  }
  return frontier::AssessJob(std::move(ranks), {});
}

TEST(StagesPageTest, SaysWhatTheTextSaysWithoutAScript) {
  const frontier::JobStages job = JobOfPage();
  const std::string page = StagesPage(job);
  EXPECT_THAT(page, HasSubstr(R"(<meta name="lockstep-kind" content="stages">)"));
  EXPECT_THAT(page, HasSubstr("<strong>Rank 2 costs the job"));
  EXPECT_THAT(page, HasSubstr("Steps 60 to 99 took 62 % longer (21.0 ms, else 13.0 ms a step): rank 2 in input."));
  EXPECT_THAT(page, HasSubstr("Rank 2&#39;s process grows from each third of the run to the next"));
}

TEST(StagesPageTest, IsWrittenForAJobOfNothing) {
  EXPECT_THAT(StagesPage(frontier::AssessJob(std::vector<RankStages>(1), {})), HasSubstr("<strong>Undecided"));
}

}  // namespace
}  // namespace lockstep::page
