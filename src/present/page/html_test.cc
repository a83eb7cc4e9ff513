#include "present/page/html.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::page {
namespace {

TEST(HtmlTest, MarkupBecomesText) {
  EXPECT_EQ(EscapeHtml("</script><script>alert(\"1\")</script>"),
            "&lt;/script&gt;&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;");
  EXPECT_EQ(EscapeHtml("a & b's"), "a &amp; b&#39;s");
}

TEST(HtmlTest, ControlsAndTurnsOfDirectionBecomeQuestionMarks) {
  EXPECT_EQ(EscapeHtml(std::string("a\0b\x1b[31m\r\n", 9)), "a?b?[31m?");
  EXPECT_EQ(EscapeHtml("abc\xE2\x80\xAEgpj.exe"), "abc?gpj.exe");
}

TEST(HtmlTest, WhatIsNoUtf8IsReplaced) { EXPECT_EQ(EscapeHtml("a\xFFz"), "a\xEF\xBF\xBDz"); }

}  // namespace
}  // namespace lockstep::page
