#include "base/http/http_message.h"

#include <gtest/gtest.h>

namespace lockstep::http {
namespace {

TEST(ReadTargetTest, SplitsAndDecodesPathAndQuery) {
  Request request;
  ASSERT_TRUE(ReadTarget("/data/events-3?x=%41", &request));
  EXPECT_EQ("/data/events-3", request.path);
  EXPECT_EQ("x=%41", request.query);
  ASSERT_TRUE(ReadTarget("/a%20b", &request));
  EXPECT_EQ("/a b", request.path);
  EXPECT_EQ("", request.query);
}

TEST(ReadTargetTest, RefusesWhatIsNoPlainPath) {
  Request request;
  for (const char* target :
       {"", "*", "http://127.0.0.1/", "data", "/../etc/passwd", "/a/../b", "/a/..", "/./a", "/%2e%2e/a", "/a%2f..%2fb",
        "/%00", "/%0a", "/%zz", "/%4", "/%", "/a\\b", "/a#b", "/%5c"}) {
    EXPECT_FALSE(ReadTarget(target, &request)) << target;
  }
}

TEST(IsLoopbackHostTest, AdmitsLoopbackNamesWithAndWithoutPort) {
  for (const char* host : {"127.0.0.1", "127.0.0.1:8080", "localhost", "LocalHost:1", "[::1]", "[::1]:9001"}) {
    EXPECT_TRUE(IsLoopbackHost(host)) << host;
  }
}

TEST(IsLoopbackHostTest, RefusesEveryOtherName) {
  for (const char* host : {"", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "127.0.0.1:",
                           "localhost:1x", "127.0.0.1:123456", "0.0.0.0", "::1", "[::1", "user@localhost", ":80"}) {
    EXPECT_FALSE(IsLoopbackHost(host)) << host;
  }
}

TEST(AcceptsGzipTest, ReadsTheListAndItsWeights) {
  EXPECT_TRUE(AcceptsGzip("gzip, deflate, br"));
  EXPECT_TRUE(AcceptsGzip("br;q=1.0, GZIP;q=0.5"));
  EXPECT_FALSE(AcceptsGzip(""));
  EXPECT_FALSE(AcceptsGzip("identity"));
  EXPECT_FALSE(AcceptsGzip("gzip;q=0"));
  EXPECT_FALSE(AcceptsGzip("gzipped"));
}

TEST(MatchesEtagTest, MatchesOneOfTheListWeakOrStrong) {
  EXPECT_TRUE(MatchesEtag("\"a\"", "\"a\""));
  EXPECT_TRUE(MatchesEtag("\"b\", W/\"a\"", "\"a\""));
  EXPECT_TRUE(MatchesEtag("*", "\"a\""));
  EXPECT_FALSE(MatchesEtag("\"b\"", "\"a\""));
  EXPECT_FALSE(MatchesEtag("", "\"a\""));
  EXPECT_FALSE(MatchesEtag("*", ""));
}

TEST(ReadRangeTest, PartsAreCutToTheBody) {
  struct Case {
    const char* header;
    uint64_t begin;
    uint64_t end;
  };
  for (const Case& one : {Case{"bytes=0-3", 0, 4}, Case{"bytes=4-", 4, 10}, Case{"BYTES=-3", 7, 10},
                          Case{"bytes=-99", 0, 10}, Case{"bytes=5-9999999999999999999", 5, 10}}) {
    ByteRange range;
    ASSERT_EQ(RangeKind::kPart, ReadRange(one.header, 10, &range)) << one.header;
    EXPECT_EQ(one.begin, range.begin) << one.header;
    EXPECT_EQ(one.end, range.end) << one.header;
  }
}

TEST(ReadRangeTest, WhatIsNotReadAsksForTheWhole) {
  ByteRange range;
  for (const char* header : {"", "bytes=", "bytes=-", "bytes=a-b", "bytes=5-4", "lines=1-2", "bytes=0-1,3-4",
                             "bytes=+1-2", "bytes=0-99999999999999999999"}) {
    EXPECT_EQ(RangeKind::kWhole, ReadRange(header, 10, &range)) << header;
  }
}

TEST(ReadRangeTest, WhatLiesBehindTheEndCannotBeSent) {
  ByteRange range;
  for (const char* header : {"bytes=10-", "bytes=10-20", "bytes=-0"})
    EXPECT_EQ(RangeKind::kUnsatisfiable, ReadRange(header, 10, &range)) << header;
  EXPECT_EQ(RangeKind::kUnsatisfiable, ReadRange("bytes=0-", 0, &range));
}

}  // namespace
}  // namespace lockstep::http
