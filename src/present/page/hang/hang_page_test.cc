#include "present/page/hang/hang_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "present/page/html.h"

namespace lockstep::page {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

hang::Diagnosis SkippedBy(int32_t rank) {
  hang::Diagnosis diagnosis;
  diagnosis.verdict.kind = hang::VerdictKind::kSkippedCollective;
  diagnosis.verdict.confidence = 0.9;
  diagnosis.verdict.culprit_ranks = {rank};
  diagnosis.verdict.explanation = "Rank 2 skipped <b>all_reduce</b>.";
  diagnosis.verdict.advice = {"Look at clip() & co."};
  hang::RankState& state = diagnosis.ranks.emplace_back();
  state.rank = rank;
  state.has_record = true;
  return diagnosis;
}

TEST(HangPageTest, SaysTheVerdictWithoutAScript) {
  const std::string page = ComposeHangPage(SkippedBy(2));
  EXPECT_THAT(page, HasSubstr(R"(<meta name="lockstep-kind" content="hang">)"));
  EXPECT_THAT(page, HasSubstr("<title>skipped_collective - lockstep hang</title>"));
  EXPECT_THAT(page, HasSubstr("Rank 2 skipped &lt;b&gt;all_reduce&lt;/b&gt;."));
  EXPECT_THAT(page, HasSubstr("<dt>Culprit ranks</dt><dd>2</dd>"));
  EXPECT_THAT(page, HasSubstr("<li>Look at clip() &amp; co.</li>"));
  EXPECT_THAT(page, HasSubstr(R"(id="lockstep-main")"));
  EXPECT_THAT(page, Not(HasSubstr("<!--lockstep:")));
}

TEST(HangPageTest, CallsNobodyACulpritBelowAnEvenChance) {
  hang::Diagnosis diagnosis = SkippedBy(7);
  diagnosis.verdict.confidence = 0.4;
  const std::string page = ComposeHangPage(diagnosis);
  EXPECT_THAT(page, HasSubstr("<dt>Suspect ranks</dt><dd>7</dd>"));
  EXPECT_THAT(page, Not(HasSubstr("Culprit ranks")));
}

TEST(HangPageTest, IsWrittenForADiagnosisOfNothing) { EXPECT_THAT(ComposeHangPage({}), HasSubstr("undecidable")); }

TEST(HangPageTest, LinesOfTextStayLines) { EXPECT_EQ(EscapeHtmlLines("a<\nb\x01\n\nc"), "a&lt;\nb?\n\nc\n"); }

}  // namespace
}  // namespace lockstep::page
