#include "present/live_site/stage_news.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/frontier/slow_rank_for_test.h"

namespace lockstep::live_site {
namespace {

using ::testing::HasSubstr;

TEST(StageNewsTest, EachWindowSaysWhoHeldTheJobUpInWhichStage) {
  const std::string json = StageNewsJson({{"one", frontier::AssessJob(frontier::SlowSecondRank(120), {})},
                                          {"two", Error{ErrorCode::kNotFound, "no \"steps\""}}},
                                         7);
  EXPECT_THAT(json, HasSubstr(R"({"asked_unix_ns":7,"stages":["input","h2d","forward",)"));
  EXPECT_THAT(json, HasSubstr(R"("jobs":[{"job_id":"one","problem":null)"));
  EXPECT_THAT(json, HasSubstr(R"("answer":"straggler","doubt":null,"rank":1,"stage":"forward")"));
  EXPECT_THAT(json, HasSubstr(R"("rank":1,"stage":"forward","leads":".c.")"));
  EXPECT_THAT(json, HasSubstr(R"({"job_id":"two","problem":"no \"steps\""})"));
}

}  // namespace
}  // namespace lockstep::live_site
