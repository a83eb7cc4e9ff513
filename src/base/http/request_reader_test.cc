#include "base/http/request_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::http {
namespace {

using State = RequestReader::State;

Peer PeerOf(Peer::Kind kind) { return {.kind = kind, .address = "test"}; }

class RequestReaderTest : public testing::Test {
 protected:
  RequestReaderTest() {
    rules_.takes_bodies = true;
    rules_.limits.body_bytes = 1000;
  }
  /// The status that these bytes are refused with, 200 for a whole request, 100 while more is wanted.
  int Status(std::string_view bytes, Peer::Kind kind = Peer::Kind::kLoopback) {
    RequestReader reader(rules_, PeerOf(kind), "10.1.2.3");
    reader.Put(bytes);
    if (reader.state() == State::kRefused) return reader.refusal().status;
    return reader.state() == State::kWhole ? 200 : 100;
  }
  static std::string Post(const std::string& fields, const std::string& body = {}) {
    return "POST /x HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n" + body;
  }

  RequestRules rules_;
};

TEST_F(RequestReaderTest, HowTheBytesAreCutChangesNothing) {
  const std::string bytes = Post("Content-Length: 3\r\n", "abc") +
                            Post("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n4;e=1\r\ndefg\r\n0\r\nX: y\r\n\r\n") +
                            "GET /last HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    RequestReader reader(rules_, PeerOf(Peer::Kind::kLoopback), "");
    std::vector<std::string> seen;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      reader.Put(std::string_view(bytes).substr(at, piece));
      while (reader.state() == State::kWhole) {
        seen.push_back(reader.request().path + "=" + reader.request().body);
        reader.Next();
      }
    }
    EXPECT_EQ(State::kIdle, reader.state()) << piece;
    EXPECT_THAT(seen, testing::ElementsAre("/x=abc", "/x=abcdefg", "/last=")) << piece;
  }
}

TEST_F(RequestReaderTest, HeaderLinesThatComeOneByOneAreAddedUp) {
  RequestReader reader(rules_, PeerOf(Peer::Kind::kLoopback), "");
  reader.Put("GET / HTTP/1.1\r\n");
  size_t bytes = 0;
  while (reader.state() == State::kHeader && bytes < size_t{1} << 20) {
    reader.Put("a: b\r\n");
    bytes += 6;
  }
  ASSERT_EQ(State::kRefused, reader.state());
  EXPECT_EQ(431, reader.refusal().status);
  EXPECT_LE(bytes, rules_.limits.header_bytes + 6);
}

TEST_F(RequestReaderTest, BodiesThatAreLiedAboutAreRefused) {
  EXPECT_EQ(200, Status(Post("Content-Length: 1000\r\n", std::string(1000, 'x'))));
  EXPECT_EQ(413, Status(Post("Content-Length: 1001\r\n")));
  EXPECT_EQ(400, Status(Post("Content-Length: 5\r\nContent-Length: 6\r\n", "hello")));
  EXPECT_EQ(400, Status(Post("Content-Length: -1\r\n")));
  EXPECT_EQ(400, Status(Post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")));
  EXPECT_EQ(400, Status(Post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n")));
  EXPECT_EQ(400, Status(Post("Transfer-Encoding: gzip\r\n", "x")));
  EXPECT_EQ(400, Status(Post("Transfer-Encoding: chunked, gzip\r\n", "x")));
  EXPECT_EQ(417, Status(Post("Content-Length: 5\r\nExpect: miracles\r\n")));
  EXPECT_EQ(100, Status(Post("Content-Length: 5\r\n", "hell")));
  EXPECT_EQ(413, Status("GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx"));
}

TEST_F(RequestReaderTest, ChunksWithoutEndAreRefused) {
  const std::string start = Post("Transfer-Encoding: chunked\r\n");
  std::string large;
  for (int i = 0; i < 11; ++i) large += "64\r\n" + std::string(100, 'x') + "\r\n";
  EXPECT_EQ(413, Status(start + large));
  EXPECT_EQ(413, Status(start + "3e9\r\n")) << "refused by its size, before its bytes come";
  EXPECT_EQ(413, Status(start + "1;" + std::string(size_t{100} << 10, 'x')));
  EXPECT_EQ(413, Status(start + "0\r\n" + "X: " + std::string(size_t{100} << 10, 'x')));
  std::string long_lines;
  for (int i = 0; i < 20; ++i) long_lines += "1;" + std::string(1000, 'x') + "\r\ny\r\n";
  EXPECT_EQ(413, Status(start + long_lines)) << "few bytes behind long lines";
  EXPECT_EQ(400, Status(start + "xyz\r\n"));
  EXPECT_EQ(400, Status(start + "ffffffffffffffffff\r\n"));
}

TEST_F(RequestReaderTest, ATrailerChangesNothing) {
  RequestReader reader(rules_, PeerOf(Peer::Kind::kLoopback), "");
  reader.Put(Post("Transfer-Encoding: chunked\r\n", "0\r\nAuthorization: Bearer late\r\nHost: evil\r\n\r\n"));
  ASSERT_EQ(State::kWhole, reader.state());
  EXPECT_EQ("", reader.request().authorization);
}

TEST_F(RequestReaderTest, WhatAWebPageOfAnotherSiteSendsIsRefused) {
  EXPECT_EQ(200, Status(Post("")));
  EXPECT_EQ(200, Status(Post("Origin: http://localhost\r\nSec-Fetch-Site: same-origin\r\n")));
  EXPECT_EQ(200, Status(Post("Sec-Fetch-Site: none\r\n")));
  for (const char* fields : {"Origin: http://evil.example\r\n", "Origin: null\r\n", "Origin: https://localhost\r\n",
                             "Origin: http://localhost:81\r\n", "Sec-Fetch-Site: cross-site\r\n",
                             "Sec-Fetch-Site: same-site\r\n", "Sec-Fetch-Site: new\r\n"}) {
    EXPECT_EQ(403, Status(Post(fields))) << fields;
    EXPECT_EQ(403, Status("DELETE /x HTTP/1.1\r\nHost: localhost\r\n" + std::string(fields) + "\r\n")) << fields;
    EXPECT_EQ(200, Status("GET /x HTTP/1.1\r\nHost: localhost\r\n" + std::string(fields) + "\r\n")) << fields;
  }
  EXPECT_EQ(400, Status(Post("Origin: http://localhost\r\nOrigin: http://evil.example\r\n")));
}

TEST_F(RequestReaderTest, HeadersThatDecideMayNotComeTwice) {
  EXPECT_EQ(400, Status(Post("Authorization: Bearer a\r\nAuthorization: Bearer b\r\n")));
  EXPECT_EQ(400, Status("GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"));
}

TEST_F(RequestReaderTest, WhichHostsAreAnsweredDependsOnWhereTheClientIs) {
  const auto status = [&](const std::string& host, Peer::Kind kind) {
    return Status("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n", kind);
  };
  for (const auto kind : {Peer::Kind::kLoopback, Peer::Kind::kNetwork}) {
    EXPECT_EQ(200, status("localhost:9476", kind));
    EXPECT_EQ(200, status("10.1.2.3:9476", kind)) << "the address that was connected to";
    EXPECT_EQ(403, status("10.1.2.4", kind));
    EXPECT_EQ(403, status("node17", kind));
    EXPECT_EQ(403, status("", kind));
  }
  EXPECT_EQ(200, status("anything", Peer::Kind::kUnixSocket));
  rules_.host_names = {"Node17.cluster"};
  EXPECT_EQ(200, status("node17.cluster:9476", Peer::Kind::kNetwork));
  EXPECT_EQ(403, status("node17.cluster.evil:9476", Peer::Kind::kNetwork));
  EXPECT_EQ(403, status("node17.cluster:x", Peer::Kind::kNetwork));
  rules_.host_names = {"*"};
  EXPECT_EQ(200, status("anything", Peer::Kind::kNetwork));
  EXPECT_EQ(403, status("anything", Peer::Kind::kLoopback)) << "a web page could have it point here";
}

TEST_F(RequestReaderTest, RefusalsLookAsTheRulesSay) {
  rules_.refuse = [](int status, std::string sentence) { return TextResponse(status, "{" + sentence + "}"); };
  RequestReader reader(rules_, PeerOf(Peer::Kind::kLoopback), "");
  reader.Put("PUT / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_EQ(State::kRefused, reader.state());
  EXPECT_EQ("{Only GET, HEAD, POST and DELETE are answered.}", *reader.refusal().body);
  ASSERT_EQ(1U, reader.refusal().headers.size());
  EXPECT_EQ("Allow", reader.refusal().headers[0].first);
}

}  // namespace
}  // namespace lockstep::http
