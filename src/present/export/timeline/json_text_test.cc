#include "present/export/timeline/json_text.h"

#include <gtest/gtest.h>

#include "present/export/timeline/timeline.h"

namespace lockstep::timeline {
namespace {

std::string Quoted(std::string_view text) {
  std::string out;
  AppendQuoted(text, &out);
  return out;
}

TEST(AppendQuotedTest, ControlCharactersQuotesAndBackslashesAreEscaped) {
  EXPECT_EQ(Quoted("a\"b\\c\n\x01\x7f"), R"("a\"b\\c\u000a\u0001\u007f")");
}

TEST(AppendQuotedTest, BytesThatAreNotUtf8AreReplaced) {
  EXPECT_EQ(Quoted("\xC3\xA4\xFF\xC3"), "\"\xC3\xA4\\ufffd\\ufffd\"");
  EXPECT_EQ(Quoted("\xED\xA0\x80"), "\"\\ufffd\\ufffd\\ufffd\"") << "a surrogate";
  EXPECT_EQ(Quoted("\xF0\x9F\x98\x80"), "\"\xF0\x9F\x98\x80\"");
}

TEST(KindOfOutputTest, TheEndingSaysTheFormat) {
  EXPECT_EQ(KindOfOutput("a.pftrace")->format, Format::kPerfetto);
  EXPECT_EQ(KindOfOutput("a.tar")->format, Format::kArchive);
  EXPECT_EQ(KindOfOutput("a.json")->format, Format::kChromeJson);
  EXPECT_FALSE(KindOfOutput("a.json")->gzip);
  EXPECT_TRUE(KindOfOutput("a.json.gz")->gzip);
  EXPECT_TRUE(KindOfOutput("a.pftrace.gz")->gzip);
}

TEST(KindOfOutputTest, OtherEndingsAreRefused) {
  for (const char* path : {"", "a", "a.txt", ".json", "a.json.zst", "a.tar.gz"}) {
    const auto kind = KindOfOutput(path);
    ASSERT_FALSE(kind) << path;
    EXPECT_EQ(kind.error().code, ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace lockstep::timeline
