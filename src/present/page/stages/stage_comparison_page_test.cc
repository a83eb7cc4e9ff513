#include "present/page/stages/stage_comparison_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>

#include "present/report/stages/stage_comparison_report.h"

namespace lockstep::page {
namespace {

using model::Stage;
using model::StageSummary;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

StageSummary RunOfPage(int64_t forward_ns) {
  StageSummary run{.source = "<b>runs & co</b>", .world_size = 2, .ranks = {0, 1}, .verdict = "Even & <quiet>."};
  run.facts = {.workload = {{"model", "gpt2"}}, .exit_status = 0};
  for (int64_t step = 0; step < 60; ++step) {
    model::SummaryWindow window{.first_step = step, .last_step = step, .ns = forward_ns + step % 3 * 1000};
    At(window.frontier_ns, Stage::kForward) = window.ns;
    run.steps.push_back({step, window.ns});
    run.windows.push_back(window);
  }
  run.resident_bytes = int64_t{512} << 20;
  return run;
}

TEST(StageComparisonPageTest, SaysWhatTheTextSaysWithoutAScript) {
  const auto compared = stage_comparison::Compare(RunOfPage(10'000'000), RunOfPage(15'000'000), {});
  const auto gate = stage_comparison::Decide(compared, 0.05);
  const std::string page = StageComparisonPage(compared, gate);
  std::ostringstream text;
  report::WriteStageComparisonText(compared, gate, {}, text);
  EXPECT_THAT(text.str(), AllOf(HasSubstr("B is 50 % slower"), HasSubstr("because forward grew by 5.00 ms"),
                                HasSubstr("--fail-on fails: B is 50 % slower, the limit is 5.0 %"),
                                HasSubstr("2 ranks, 54 steps, model=gpt2"), HasSubstr("512 MiB")));
  EXPECT_THAT(text.str(), Not(HasSubstr("backward"))) << "a stage that neither run has";
  EXPECT_THAT(page, AllOf(HasSubstr(R"(content="stage-comparison">)"), HasSubstr("<strong>B is 50 % slower"),
                          HasSubstr("&lt;b&gt;runs &amp; co&lt;/b&gt;"), HasSubstr("Even &amp; &lt;quiet&gt;."),
                          Not(HasSubstr("<b>runs"))));
}

TEST(StageComparisonPageTest, IsWrittenForRunsOfNothing) {
  const auto compared = stage_comparison::Compare({}, {}, {});
  EXPECT_THAT(StageComparisonPage(compared, {}), HasSubstr("cannot tell: no step with a known length in A"));
}

}  // namespace
}  // namespace lockstep::page
