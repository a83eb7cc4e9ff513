#include "inside/launch/tool_version.h"

#include <gtest/gtest.h>

namespace lockstep::launch {
namespace {

TEST(ToolVersionTest, WhatRealToolsPrintIsRead) {
  EXPECT_EQ(ParseToolVersion("NVIDIA Nsight Systems version 2023.4.4.54-234433681190v0\n").value(),
            (ToolVersion{2023, 4, 4}));
  EXPECT_EQ(ParseToolVersion("NVIDIA Nsight Systems version 2022.4.2.1-df9881f\n").value(), (ToolVersion{2022, 4, 2}));
  EXPECT_EQ(
      ParseToolVersion("NVIDIA (R) Nsight Compute Command Line Profiler\nCopyright (c) 2018-2024 NVIDIA Corporation\n"
                       "Version 2024.1.1.0 (build 33998838) (public-release)\n")
          .value(),
      (ToolVersion{2024, 1, 1}));
}

TEST(ToolVersionTest, OtherTextIsNoVersion) {
  for (const char* text : {"", "version", "version ", "version 2", "version 2023", "version .4", "version 1.2.3",
                           "Copyright 2018-2024", "version 99999999999999.1"}) {
    const auto version = ParseToolVersion(text);
    ASSERT_FALSE(version) << text;
    EXPECT_EQ(version.error().code, ErrorCode::kCorruptData);
  }
}

TEST(ToolVersionTest, VersionsAreOrdered) {
  EXPECT_LT((ToolVersion{2023, 4, 4}), (ToolVersion{2024, 1, 0}));
  EXPECT_LT((ToolVersion{2025, 3, 9}), (ToolVersion{2025, 6, 1}));
  EXPECT_EQ(ToText({2023, 4, 4}), "2023.4.4");
}

TEST(ToolVersionTest, AToolThatIsNotThereIsSaidWithWhatToDo) {
  const Environment nowhere = Environment::FromEntries({"PATH=/nonexistent"});
  const auto found = FindTool("no-such-nsys", "", nowhere);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(FindTool("nsys", "/nonexistent/nsys", nowhere).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(FindTool("sh", "", Environment::FromEntries({"PATH=/nonexistent:/bin"})).value(), "/bin/sh");
}

TEST(ToolVersionTest, AProgramThatIsNoProfilerIsNotTakenForOne) {
  EXPECT_EQ(AskToolVersion("/bin/true").error().code, ErrorCode::kCorruptData);
  EXPECT_EQ(AskToolVersion("/bin/false").error().code, ErrorCode::kCorruptData);
}

}  // namespace
}  // namespace lockstep::launch
