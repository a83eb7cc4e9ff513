#include "analysis/profile_history/profile_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <string>

namespace lockstep::profile_history {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

CaptureRecord Capture(int i, double step, const std::string& job) {
  CaptureRecord record{.capture = std::to_string(i), .time_unix_ns = i, .job_id = job};
  record.figures = {{.name = "step", .unit = "ns", .value = step * 1e6},
                    {.name = "kernel:gemm<\"x\">", .unit = "ns", .value = step * 0.5e6, .whole = step * 1e6}};
  return record;
}

TEST(ProfileMetricsTest, TheDocumentListsThemAsTheyAre) {
  std::ifstream file(LOCKSTEP_DOCS "/watch.md");
  std::set<std::string> listed;
  std::string line;
  const std::regex row(R"(^\| `(\w+)` \| (\w+) \| (.*?) \| (.*) \|$)");
  for (std::smatch match; std::getline(file, line);) {
    if (std::regex_match(line, match, row)) {
      listed.insert(match[1].str() + "|" + match[2].str() + "|" + match[3].str() + "|" + match[4].str());
    }
  }
  std::set<std::string> specs;
  for (const ProfileMetricSpec& spec : ProfileMetricSpecs()) {
    std::string labels = "`" + std::regex_replace(std::string(spec.labels), std::regex(","), "`, `") + "`";
    specs.insert(std::string(spec.name) + "|" + spec.type + "|" + labels + "|" + spec.help);
  }
  EXPECT_EQ(listed, specs);
}

TEST(ProfileMetricsTest, ARegressionIsThereWithItsSizeAndKernelsOnlyThen) {
  JobHistory history;
  ProfileFacts facts{.job_id = "a\"b\n", .now_unix_ns = 1'500'000'000};
  facts.counts.skipped_busy = 3;
  for (int i = 0; i < 30; ++i) history.Observe(Capture(i, 100, facts.job_id));
  const std::string before = ProfileMetricsText(facts, history);
  EXPECT_THAT(before, HasSubstr("lockstep_profile_regression_ratio{job_id=\"a\\\"b?\",figure=\"step\"} 0\n"));
  EXPECT_THAT(before, HasSubstr("lockstep_profile_captures_total{job_id=\"a\\\"b?\",outcome=\"skipped_busy\"} 3\n"));
  EXPECT_THAT(before, HasSubstr("outcome=\"failed\"} 0\n"));
  EXPECT_THAT(before, HasSubstr("lockstep_profile_last_look_timestamp_seconds{job_id=\"a\\\"b?\"} 1.5\n"));
  EXPECT_THAT(before, HasSubstr("lockstep_profile_step_seconds{job_id=\"a\\\"b?\"} 0.1\n"));
  EXPECT_THAT(before, Not(HasSubstr("gemm")));
  EXPECT_THAT(before, Not(HasSubstr("last_success"))) << "not measured is absent";
  for (int i = 30; i < 33; ++i) history.Observe(Capture(i, 150, facts.job_id));
  const std::string after = ProfileMetricsText(facts, history);
  EXPECT_THAT(after, HasSubstr("lockstep_profile_regression_ratio{job_id=\"a\\\"b?\",figure=\"step\"} 0.5\n"));
  EXPECT_THAT(after, HasSubstr("figure=\"kernel:gemm<\\\"x\\\">\"} 0.5\n"));
}

}  // namespace
}  // namespace lockstep::profile_history
