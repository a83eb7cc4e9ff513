#include "model/log_line/compressed_log.h"

#include <gtest/gtest.h>

namespace lockstep::logs {
namespace {

using namespace std::string_literals;

std::string Head(uint8_t flags, const std::string& rest) {
  return "\x1f\x8b\x08"s + static_cast<char>(flags) + "\0\0\0\0\0\3"s + rest;
}

TEST(CompressedLogTest, TheCommentIsFoundBehindWhatElseTheHeaderSays) {
  const std::string comment = CompressedFromComment(18'446'744'073'709'551'615u) + "\0"s;
  EXPECT_EQ(CompressedFrom(Head(16, comment + "data")), UINT64_MAX);
  EXPECT_EQ(CompressedFrom(Head(16 | 8, "x.log.1\0"s + comment)), UINT64_MAX);
  EXPECT_EQ(CompressedFrom(Head(16 | 8 | 4, "\3\0abcx.log.1\0"s + comment)), UINT64_MAX);
}

TEST(CompressedLogTest, WhatOthersCompressedSaysNone) {
  const std::string whole = Head(16 | 4, "\3\0abc"s + CompressedFromComment(7) + "\0"s);
  EXPECT_EQ(CompressedFrom(whole), 7u);
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(CompressedFrom(whole.substr(0, size))) << size;
  EXPECT_FALSE(CompressedFrom(Head(8, "x.log.1\0"s)));
  EXPECT_FALSE(CompressedFrom(Head(16, "made by hand\0"s)));
  EXPECT_FALSE(CompressedFrom(Head(16, "lockstep inode 1x\0"s)));
  EXPECT_FALSE(CompressedFrom(Head(16 | 4, "\xff\xff"s + CompressedFromComment(7) + "\0"s)));
  EXPECT_FALSE(CompressedFrom("lockstep inode 7"));
}

}  // namespace
}  // namespace lockstep::logs
