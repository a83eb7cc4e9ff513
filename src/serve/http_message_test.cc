#include "serve/http_message.h"

#include <gtest/gtest.h>

namespace lockstep::serve {
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

}  // namespace
}  // namespace lockstep::serve
