#include "base/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/http/testing/test_client.h"

namespace lockstep::http {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class HttpServerTest : public testing::Test {
 protected:
  void Start(ServerLimits limits = {}) {
    ServerOptions options;
    options.limits = limits;
    auto server = HttpServer::Open(options, [this](const Request& request) { return Answer(request); });
    ASSERT_TRUE(server.has_value()) << server.error().ToString();
    server_ = std::move(*server);
    thread_ = std::jthread([this] { server_->Run(); });
  }
  void TearDown() override {
    if (server_) server_->Stop();
    if (thread_.joinable()) thread_.join();
  }
  Response Answer(const Request& request) {
    ++request_count_;
    if (request.path == "/fail") throw std::runtime_error("on purpose");
    if (request.path == "/file") return FileResponse();
    if (request.path != "/hello") return TextResponse(404, "no\n");
    Response response = TextResponse(200, "hello\n");
    response.etag = "\"one\"";
    return response;
  }
  Response FileResponse() {
    Response response;
    response.file = file_;
    response.on_sent = [this] { ++sent_count_; };
    return response;
  }
  std::string Ask(const std::string& request) {
    Client client(server_->port());
    client.Say(request);
    client.Finish();
    return client.Hear();
  }
  static std::string Get(const std::string& target, const std::string& more = {}) {
    return "GET " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n" + more + "\r\n";
  }

  std::unique_ptr<HttpServer> server_;
  std::jthread thread_;
  std::atomic<int> request_count_ = 0;
  std::atomic<int> sent_count_ = 0;
  std::string file_;
};

TEST_F(HttpServerTest, AnswersGetWithBodyAndGuardingHeaders) {
  Start();
  const std::string answer = Ask(Get("/hello"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("\r\n\r\nhello\n"));
  EXPECT_THAT(answer, HasSubstr("X-Content-Type-Options: nosniff"));
  EXPECT_THAT(answer, HasSubstr("Referrer-Policy: no-referrer"));
  EXPECT_THAT(answer, HasSubstr("X-Frame-Options: SAMEORIGIN"));
}

TEST_F(HttpServerTest, HeadHasTheLengthAndNoBody) {
  Start();
  const std::string answer = Ask("HEAD /hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 6"));
  EXPECT_THAT(answer, Not(HasSubstr("hello\n")));
}

TEST_F(HttpServerTest, AnEtagThatIsKnownGives304) {
  Start();
  const std::string answer = Ask(Get("/hello", "If-None-Match: \"one\"\r\n"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 304"));
  EXPECT_THAT(answer, Not(HasSubstr("hello\n")));
}

TEST_F(HttpServerTest, AnswersRequestsThatWereSentTogetherInTheirOrder) {
  Start();
  const std::string one = "GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
  const std::string answer = Ask(one + "GET /other HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + Get("/hello"));
  EXPECT_EQ(3, request_count_);
  EXPECT_LT(answer.find("200 OK"), answer.find("404 Not Found"));
  EXPECT_NE(answer.find("200 OK"), answer.rfind("200 OK"));
}

TEST_F(HttpServerTest, OtherMethodsAreRefusedBeforeTheHandler) {
  Start();
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "MADEUP"}) {
    const std::string answer = Ask(std::string(method) + " /hello HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 405")) << method;
    EXPECT_THAT(answer, HasSubstr("Allow: GET, HEAD")) << method;
  }
  EXPECT_EQ(0, request_count_);
}

TEST_F(HttpServerTest, AnotherHostNameIsRefused) {
  Start();
  EXPECT_THAT(Ask("GET /hello HTTP/1.1\r\nHost: evil.example\r\n\r\n"), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(Ask("GET /hello HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 403"));
  EXPECT_EQ(0, request_count_);
}

TEST_F(HttpServerTest, PathsThatClimbAreRefused) {
  Start();
  EXPECT_THAT(Ask(Get("/../../etc/passwd")), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Ask(Get("/%2e%2e/%2e%2e/etc/passwd")), StartsWith("HTTP/1.1 400"));
  EXPECT_EQ(0, request_count_);
}

TEST_F(HttpServerTest, WhatIsNoHttpIsRefused) {
  Start();
  EXPECT_THAT(Ask("\x16\x03\x01\x02nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400"));
}

TEST_F(HttpServerTest, BodiesAreRefusedUnread) {
  Start();
  EXPECT_THAT(Ask("GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n\r\nhello"),
              StartsWith("HTTP/1.1 413"));
  Client client(server_->port());
  client.Say("GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "10000\r\n" + std::string(0x10000, 'x') + "\r\n";
  for (int i = 0; i < 10'000 && client.Say(chunk); ++i) {
    // A body without end: 640 MB if nobody stopped it.
  }
  EXPECT_EQ(0, request_count_);
}

TEST_F(HttpServerTest, AHeaderLineWithoutEndIsCutOff) {
  Start();
  Client client(server_->port());
  const std::string piece(1 << 16, 'a');
  client.Say("GET /");
  int count = 0;
  while (count < 10'000 && client.Say(piece)) ++count;
  EXPECT_LT(count, 10'000) << "the server took 640 MB of one line";
  EXPECT_EQ(0, request_count_);
}

TEST_F(HttpServerTest, ManySmallHeadersAreCutOff) {
  Start();
  Client client(server_->port());
  client.Say("GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\n");
  int count = 0;
  while (count < 1'000'000 && client.Say("a: b\r\n")) ++count;
  EXPECT_LT(count, 1'000'000);
  EXPECT_EQ(0, request_count_);
}

TEST_F(HttpServerTest, AHeaderThatDoesNotComeIsNotWaitedForForEver) {
  ServerLimits limits;
  limits.header_seconds = 1;
  Start(limits);
  Client client(server_->port());
  client.Say("GET /hel");
  client.Hear();
  EXPECT_TRUE(client.closed());
}

TEST_F(HttpServerTest, ConnectionsBeyondTheLimitAreClosedAndOthersServed) {
  ServerLimits limits;
  limits.connection_count = 20;
  limits.crowded_seconds = 3600;
  Start(limits);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 60; ++i) clients.push_back(std::make_unique<Client>(server_->port()));
  // They are accepted in the order in which they came.
  for (size_t i = 20; i < clients.size(); ++i) {
    EXPECT_EQ("", clients[i]->Hear());
    EXPECT_TRUE(clients[i]->closed()) << i;
  }
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_TRUE(clients[i]->Say(Get("/hello")));
    EXPECT_THAT(clients[i]->Hear(), StartsWith("HTTP/1.1 200")) << i;
  }
  clients.clear();
  EXPECT_THAT(Ask(Get("/hello")), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, SixHundredConnectionsOfOneSourceLeaveRoomForOthers) {
  ServerLimits limits;
  limits.crowded_seconds = 3600;
  Start(limits);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 600; ++i) {
    clients.push_back(std::make_unique<Client>(server_->port()));
    ASSERT_TRUE(clients.back()->connected()) << i;
  }
  // They are accepted in the order in which they came.
  for (size_t i = 32; i < clients.size(); ++i) EXPECT_EQ("", clients[i]->Hear()) << i;
  Client other(server_->port(), "127.0.0.2");
  other.Say(Get("/hello"));
  EXPECT_THAT(other.Hear(), StartsWith("HTTP/1.1 200"));
  clients[31]->Say(Get("/hello"));
  EXPECT_THAT(clients[31]->Hear(), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, FloodsTakeNoMemory) {
  Start();
  EXPECT_THAT(Ask(Get("/hello")), StartsWith("HTTP/1.1 200"));
  const auto resident_bytes = [] {
    std::ifstream statm("/proc/self/statm");
    uint64_t size = 0;
    uint64_t resident = 0;
    statm >> size >> resident;
    return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  };
  const uint64_t before = resident_bytes();
  const std::string piece(1 << 16, 'a');
  std::string fields;
  for (int i = 0; i < 1000; ++i) fields += "X-" + std::to_string(i) + ": value\r\n";
  const std::vector<std::pair<std::string, std::string>> floods = {
      {"", piece},
      {"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", piece},
      {"GET / HTTP/1.1\r\nHost: localhost\r\n", fields},
      {"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", "10000\r\n" + piece + "\r\n"},
      {"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n", piece},
  };
  for (const auto& [start, rest] : floods) {
    Client client(server_->port());
    ASSERT_TRUE(client.Say(start));
    size_t said = 0;
    while (said < (size_t{64} << 20) && client.Say(rest)) said += rest.size();
    EXPECT_LT(said, size_t{64} << 20) << "was never cut off: " << start;
  }
  EXPECT_LT(resident_bytes(), before + (uint64_t{8} << 20));
  EXPECT_EQ(1, request_count_);
}

TEST_F(HttpServerTest, ARefusalArrivesWhateverWasSentBehindIt) {
  Start();
  Client client(server_->port());
  client.Say("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(size_t{512} << 10, 'x') + "\r\n\r\n");
  EXPECT_THAT(client.Hear(), StartsWith("HTTP/1.1 431"));
  const std::string inner = "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const std::string answer =
      Ask("GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(inner.size()) + "\r\n\r\n" + inner);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(answer, Not(HasSubstr("hello")));  // A body is never taken for the next request.
  EXPECT_EQ(0, request_count_);
}

TEST_F(HttpServerTest, TwoHostsAreRefused) {
  Start();
  EXPECT_THAT(Ask("GET /hello HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 400"));
  EXPECT_EQ(0, request_count_);
}

TEST_F(HttpServerTest, TheTimeForALaterHeaderRunsFromItsFirstByte) {
  ServerLimits limits;
  limits.header_seconds = 1;
  limits.idle_seconds = 3600;
  Start(limits);
  Client client(server_->port());
  client.Say("GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hel");
  EXPECT_THAT(client.Hear(), HasSubstr("hello"));
  EXPECT_TRUE(client.closed());
}

TEST_F(HttpServerTest, SendsPartsOfAFileAndSaysWhenTheEndHasLeft) {
  file_ = testing::TempDir() + "http_server_part_" + std::to_string(::getpid());
  std::string content;
  for (int i = 0; content.size() < 300'000; ++i) content += std::to_string(i) + "\n";
  std::ofstream(file_) << content;
  Start();
  std::string answer = Ask(Get("/file", "Range: bytes=100000-200000\r\n"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 206"));
  EXPECT_THAT(answer, HasSubstr("Content-Range: bytes 100000-200000/" + std::to_string(content.size()) + "\r\n"));
  EXPECT_EQ(content.substr(100'000, 100'001), answer.substr(answer.find("\r\n\r\n") + 4));
  EXPECT_EQ(0, sent_count_);
  answer = Ask(Get("/file", "Range: bytes=200001-\r\n"));
  EXPECT_EQ(content.substr(200'001), answer.substr(answer.find("\r\n\r\n") + 4));
  EXPECT_EQ(1, sent_count_);
  EXPECT_THAT(Ask(Get("/file", "Range: bytes=99999999-\r\n")), StartsWith("HTTP/1.1 416"));
  answer = Ask(Get("/file", "Range: bytes=0-1\r\nIf-Range: \"old\"\r\n"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  std::remove(file_.c_str());
}

TEST_F(HttpServerTest, AHandlerThatThrowsGives500AndTheServerLives) {
  Start();
  EXPECT_THAT(Ask(Get("/fail")), StartsWith("HTTP/1.1 500"));
  EXPECT_THAT(Ask(Get("/hello")), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, SendsAFileWholeAndSaysWhen) {
  file_ = testing::TempDir() + "http_server_test_" + std::to_string(::getpid());
  std::string content(3'000'001, 'x');
  content.back() = '!';
  std::ofstream(file_) << content;
  Start();
  EXPECT_THAT(Ask("HEAD /file HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
              HasSubstr("Content-Length: 3000001"));
  EXPECT_EQ(0, sent_count_);
  const std::string answer = Ask(Get("/file"));
  EXPECT_EQ(content, answer.substr(answer.find("\r\n\r\n") + 4));
  EXPECT_EQ(1, sent_count_);
  std::remove(file_.c_str());
  EXPECT_THAT(Ask(Get("/file")), StartsWith("HTTP/1.1 404"));
}

TEST_F(HttpServerTest, APortThatIsTakenIsAnErrorThatSaysWhatToDo) {
  Start();
  ServerOptions options;
  options.port = server_->port();
  const auto second = HttpServer::Open(options, [](const Request&) { return Response(); });
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(ErrorCode::kIo, second.error().code);
  EXPECT_THAT(second.error().message, HasSubstr("in use"));
}

TEST_F(HttpServerTest, StopEndsRunWithConnectionsOpen) {
  Start();
  Client idle(server_->port());
  Client kept(server_->port());
  kept.Say("GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  EXPECT_THAT(kept.HearUntil("hello\n"), HasSubstr("hello"));
  server_->Stop();
  thread_.join();
}

}  // namespace
}  // namespace lockstep::http
