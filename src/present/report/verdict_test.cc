#include "present/report/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/nanoseconds.h"

namespace lockstep::report {
namespace {

using analysis::Finding;
using analysis::FindingSeverity;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kMs = kSecondNs / 1000;

Finding Make(std::string id, FindingSeverity severity, std::optional<int64_t> gain_ns, std::optional<double> ratio) {
  Finding finding;
  finding.id = std::move(id);
  finding.severity = severity;
  finding.gain_ns_per_step = gain_ns;
  finding.gain_ratio = ratio;
  return finding;
}

TEST(VerdictTest, ACulpritIsAHeadlineOnlyIfItSavesEnough) {
  const std::vector<Finding> findings = {
      Make("exposed_communication", FindingSeverity::kCritical, 39 * kMs, 0.39),
      Make("straggler", FindingSeverity::kWarning, 5 * kMs, 0.05),
      Make("slow_link", FindingSeverity::kWarning, kMs, 0.008),
  };
  EXPECT_THAT(VerdictFindings(findings), ElementsAre(&findings[0], &findings[1]));
}

TEST(VerdictTest, TheFirstThatMattersIsAHeadlineHoweverSmall) {
  const std::vector<Finding> findings = {Make("short_kernels", FindingSeverity::kInfo, {}, {}),
                                         Make("straggler", FindingSeverity::kWarning, kMs, 0.008)};
  EXPECT_THAT(VerdictFindings(findings), ElementsAre(&findings[1]));
  EXPECT_THAT(VerdictFindings({}), IsEmpty());
}

TEST(VerdictTest, GainsAreSaidOfAStepOrOfTheWindow) {
  const Finding known = Make("straggler", FindingSeverity::kWarning, 39 * kMs, 0.39);
  EXPECT_EQ(GainWords(known, true), "saves up to 39.0 ms a step (39 %)");
  EXPECT_EQ(HeadlineGain(known, true), "costs up to 39 % of a step");
  EXPECT_EQ(HeadlineGain(known, false), "costs up to 39 % of this window");
  const Finding no_ratio = Make("straggler", FindingSeverity::kWarning, 39 * kMs, {});
  EXPECT_EQ(GainWords(no_ratio, false), "saves up to 39.0 ms in this window");
  EXPECT_EQ(HeadlineGain(no_ratio, true), "costs up to 39.0 ms a step");
  EXPECT_EQ(HeadlineGain(Make("imbalance", FindingSeverity::kWarning, {}, {}), true), "");
}

}  // namespace
}  // namespace lockstep::report
