#include "present/live_site/stage_news.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/nanoseconds.h"

namespace lockstep::live_site {
namespace {

using model::RankStages;
using model::Stage;
using model::StepStages;
using ::testing::HasSubstr;

/// Three ranks that meet once a step, the second of which takes twice as long in forward.
std::vector<RankStages> SlowSecondRank() {
  constexpr int64_t kStepNs = 10 * kMillisecondNs;
  std::vector<RankStages> ranks;
  for (int32_t number = 0; number < 3; ++number) {
    RankStages& rank = ranks.emplace_back(RankStages{.rank = number});
    for (int64_t step = 0; step < 120; ++step) {
      StepStages& stages = rank.steps.emplace_back(StepStages{.number = step, .duration_ns = 2 * kStepNs + 1000});
      const int64_t forward_ns = number == 1 ? 2 * kStepNs : kStepNs;
      stages.spans.push_back({Stage::kForward, forward_ns});
      stages.spans.push_back({Stage::kCommunication, stages.duration_ns - forward_ns});
    }
  }
  return ranks;
}

TEST(StageNewsTest, EachWindowSaysWhoHeldTheJobUpInWhichStage) {
  const std::string json = StageNewsJson(
      {{"one", frontier::AssessJob(SlowSecondRank(), {})}, {"two", Error{ErrorCode::kNotFound, "no \"steps\""}}}, 7);
  EXPECT_THAT(json, HasSubstr(R"({"asked_unix_ns":7,"stages":["input","h2d","forward",)"));
  EXPECT_THAT(json, HasSubstr(R"("jobs":[{"job_id":"one","problem":null)"));
  EXPECT_THAT(json, HasSubstr(R"("answer":"straggler","doubt":null,"rank":1,"stage":"forward")"));
  EXPECT_THAT(json, HasSubstr(R"("rank":1,"stage":"forward","leads":".c.")"));
  EXPECT_THAT(json, HasSubstr(R"({"job_id":"two","problem":"no \"steps\""})"));
}

}  // namespace
}  // namespace lockstep::live_site
