#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <sstream>

#include "present/page/page.h"
#include "present/page/page_template.h"

namespace lockstep::page {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

size_t Count(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(ComposeTest, TheTemplateHasEveryMarkOnceAndAStrictPolicy) {
  for (const PageKind kind : {PageKind::kAnalyze, PageKind::kLive}) {
    for (const char* mark : {"title", "meta", "summary", "blocks"}) {
      EXPECT_EQ(Count(PageTemplate(kind), std::string("<!--lockstep:") + mark + "-->"), 1u) << mark;
    }
    EXPECT_EQ(Count(PageTemplate(kind), "connect-src 'none'"), 1u);
    EXPECT_EQ(Count(PageTemplate(kind), "default-src 'none'"), 1u);
    // As each of the policy's words that give way begins: the report runs SQLite's WebAssembly.
    const size_t given_way = kind == PageKind::kAnalyze ? 1 : 0;
    EXPECT_EQ(Count(PageTemplate(kind), "unsafe-"), given_way);
    EXPECT_EQ(Count(PageTemplate(kind), " 'wasm-unsafe-eval';"), given_way);
  }
}

TEST(ComposeTest, TheLivePageHasAProgramOfItsOwn) {
  EXPECT_THAT(ServedPage({PageKind::kLive, "t", ""}), HasSubstr("api/live/events"));
  EXPECT_THAT(ServedPage({PageKind::kAnalyze, "t", ""}), Not(HasSubstr("api/live/events")));
}

TEST(ComposeTest, APageHoldsItsPartsAndNoMarks) {
  const PageFrame frame{PageKind::kCompare, "a < b", "<h1>Summary</h1>"};
  const Block block = MakeBlock("main", "{}");
  std::ostringstream out;
  ComposePage(frame, {&block, 1}, out);
  const std::string page = out.str();
  EXPECT_THAT(page, HasSubstr("<title>a &lt; b</title>"));
  EXPECT_THAT(page, HasSubstr("<h1>Summary</h1>"));
  EXPECT_THAT(page, HasSubstr(R"(<meta name="lockstep-kind" content="compare">)"));
  EXPECT_THAT(page, HasSubstr(R"(<script type="application/x-lockstep" id="lockstep-main" data-raw-bytes="2">)"));
  EXPECT_THAT(page, HasSubstr("connect-src 'none'"));
  EXPECT_THAT(page, Not(HasSubstr("<!--lockstep:")));
}

TEST(ComposeTest, AMarkInTheDataIsNotFilledIn) {
  const PageFrame frame{PageKind::kAnalyze, "t", "&lt;!--lockstep:blocks--&gt; <!--lockstep:title-->"};
  std::ostringstream out;
  ComposePage(frame, {}, out);
  EXPECT_EQ(Count(out.str(), "<!--lockstep:title-->"), 1u);
}

TEST(ComposeTest, AServedPageMayFetchFromItsServerOnly) {
  const std::string page = ServedPage({PageKind::kAnalyze, "t", ""}, "data/\"x");
  EXPECT_THAT(page, HasSubstr("connect-src 'self'"));
  EXPECT_THAT(page, Not(HasSubstr("connect-src 'none'")));
  EXPECT_THAT(page, HasSubstr(R"(<meta name="lockstep-data" content="data/&quot;x">)"));
  EXPECT_THAT(page, Not(HasSubstr("application/x-lockstep\" id")));
}

TEST(ComposeTest, TheDocumentIsJsonWhateverTheNames) {
  model::Ledger ledger;
  ledger.Add({"bad\xFF", model::Severity::kError, "a\"b", 3, uint64_t{12}, 2, "</script>\n", ""});
  const std::string json =
      DocumentJson(PageKind::kScaling, "t\xC3", true, {{"events", "all"}}, ledger, R"({"rows":[1,2]})");
  rapidjson::Document document;
  document.Parse(json.data(), json.size());
  ASSERT_FALSE(document.HasParseError());
  EXPECT_STREQ(document["schema"].GetString(), "lockstep.page/1");
  EXPECT_STREQ(document["kind"].GetString(), "scaling");
  EXPECT_TRUE(document["partial"].GetBool());
  EXPECT_STREQ(document["reductions"][0]["what"].GetString(), "events");
  EXPECT_EQ(document["ledger"][0]["byte_offset"].GetInt(), 12);
  EXPECT_TRUE(document["ledger"][0]["advice"].IsNull());
  EXPECT_EQ(document["data"]["rows"][1].GetInt(), 2);
}

}  // namespace
}  // namespace lockstep::page
