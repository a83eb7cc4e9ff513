#include "node/control/client/http_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "node/control/client/testing/patience.h"
#include "node/control/client/testing/scripted_server.h"

namespace lockstep::control {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Http;
using testing::kLong;
using ::testing::Not;
using testing::ScriptedServer;
using Request = ScriptedServer::Request;
using Answer = ScriptedServer::Answer;
using Method = HttpConnection::Method;

class HttpConnectionTest : public ::testing::Test {
 protected:
  HttpConnectionTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lockstep-http-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~HttpConnectionTest() override { std::filesystem::remove_all(folder_); }

  static Endpoint At(uint16_t port) {
    Endpoint endpoint;
    endpoint.address = "127.0.0.1";
    endpoint.port = port;
    return endpoint;
  }
  /// A tunnel as a user might write one: bash carries the bytes.
  static Endpoint Through(uint16_t port, const std::string& before = "") {
    Endpoint endpoint;
    endpoint.host = "n001";
    endpoint.tunnel = {"bash", "-c", before + "exec 3<>/dev/tcp/127.0.0.1/$0 4<&0; cat <&4 >&3 & cat <&3; kill 0",
                       std::to_string(port)};
    return endpoint;
  }
  static std::unique_ptr<HttpConnection> Open(const Endpoint& endpoint) {
    Result<std::unique_ptr<HttpConnection>> connection = HttpConnection::Open(endpoint);
    EXPECT_TRUE(connection) << connection.error().message;
    return std::move(*connection);
  }
  static Result<HttpReply> Get(const Endpoint& endpoint, int64_t deadline_ns = kLong) {
    return Open(endpoint)->Ask(Method::kGet, "/x", "", deadline_ns);
  }
  static Error ErrorOf(const Result<HttpReply>& reply) {
    EXPECT_FALSE(reply);
    return reply ? Error{} : reply.error();
  }

  std::filesystem::path folder_;
};

TEST_F(HttpConnectionTest, AConnectionIsKeptBetweenRequests) {
  ScriptedServer server([](const Request& request) { return Answer{Http(200, request.head.substr(0, 8))}; });
  const auto connection = Open(At(server.port()));
  for (int i = 0; i < 5; ++i) {
    const Result<HttpReply> reply = connection->Ask(Method::kGet, "/a?b", "", kLong);
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(reply->status, 200);
    EXPECT_EQ(reply->body, "GET /a?b");
  }
  EXPECT_EQ(server.connection_count(), 1);
}

TEST_F(HttpConnectionTest, APostIsNeverPutOnAConnectionThatMayBeGone) {
  ScriptedServer server([](const Request& request) { return Answer{Http(201, request.body)}; });
  const auto connection = Open(At(server.port()));
  ASSERT_TRUE(connection->Ask(Method::kGet, "/", "", kLong));
  const Result<HttpReply> reply = connection->Ask(Method::kPost, "/p", "{\"a\":1}", kLong);
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->status, 201);
  EXPECT_EQ(reply->body, "{\"a\":1}");
  ASSERT_TRUE(connection->Ask(Method::kDelete, "/d", "", kLong));
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_NE(requests[0].connection, requests[1].connection);
  EXPECT_THAT(requests[1].head,
              AllOf(HasSubstr("POST /p HTTP/1.1\r\n"), HasSubstr("application/json"), Not(HasSubstr("100-continue"))));
  EXPECT_THAT(requests[2].head, HasSubstr("DELETE /d HTTP/1.1\r\n"));
  EXPECT_EQ(requests[2].body, "");
}

TEST_F(HttpConnectionTest, AClosedConnectionIsMadeAnew) {
  ScriptedServer server([](const Request&) { return Answer{Http(200, "ok"), true}; });
  const auto connection = Open(At(server.port()));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(connection->Ask(Method::kGet, "/", "", kLong));
  EXPECT_EQ(server.connection_count(), 3);
}

TEST_F(HttpConnectionTest, AUnixSocketIsSpokenTo) {
  const std::string path = (folder_ / "s.sock").string();
  ScriptedServer server(path, [](const Request&) { return Answer{Http(200, "unix")}; });
  Endpoint endpoint;
  endpoint.unix_path = path;
  const Result<HttpReply> reply = Get(endpoint);
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "unix");
  EXPECT_THAT(server.requests().at(0).head, HasSubstr("Host: 127.0.0.1\r\n"));
}

TEST_F(HttpConnectionTest, NobodyThereIsNotFoundWithTheRemedy) {
  uint16_t port = 0;
  {
    const ScriptedServer server([](const Request&) { return Answer{}; });
    port = server.port();
  }
  const Error refused = ErrorOf(Get(At(port)));
  EXPECT_EQ(refused.code, ErrorCode::kNotFound);
  EXPECT_THAT(refused.message, AllOf(HasSubstr("Connection refused"), HasSubstr("systemctl start lockstepd"),
                                     HasSubstr("lockstep run --with-daemon")));
  Endpoint endpoint;
  endpoint.unix_path = (folder_ / "none.sock").string();
  const Error none = ErrorOf(Get(endpoint));
  EXPECT_EQ(none.code, ErrorCode::kNotFound);
  EXPECT_THAT(none.message, AllOf(HasSubstr(endpoint.unix_path), HasSubstr("systemctl start lockstepd")));
  {
    const ScriptedServer server(endpoint.unix_path, [](const Request&) { return Answer{}; });
  }
  EXPECT_EQ(ErrorOf(Get(endpoint)).code, ErrorCode::kNotFound);  // The file is there, its daemon is not.
}

TEST_F(HttpConnectionTest, ARedirectIsNotFollowedAndNoProxyAsked) {
  ::setenv("http_proxy", "http://127.0.0.1:1", 1);
  ::setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
  ScriptedServer other([](const Request&) { return Answer{Http(200, "elsewhere")}; });
  ScriptedServer server([&](const Request&) {
    return Answer{Http(302, "", "Location: http://127.0.0.1:" + std::to_string(other.port()) + "/\r\n")};
  });
  const Result<HttpReply> reply = Get(At(server.port()));
  ::unsetenv("http_proxy");
  ::unsetenv("ALL_PROXY");
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->status, 302);
  EXPECT_EQ(other.connection_count(), 0);
}

TEST_F(HttpConnectionTest, ABodyOverTheLimitEndsIt) {
  // Announced, and then again without saying how much comes.
  for (const std::string& head : {std::string("HTTP/1.1 200 X\r\nContent-Length: 68157440\r\n\r\n"),
                                  std::string("HTTP/1.1 200 X\r\nConnection: close\r\n\r\n")}) {
    ScriptedServer server([&](const Request&) { return Answer{head + std::string(size_t{65} << 20, 'a'), true}; });
    const Error error = ErrorOf(Get(At(server.port())));
    EXPECT_EQ(error.code, ErrorCode::kLimitExceeded);
  }
}

TEST_F(HttpConnectionTest, EndlessHeadersEndIt) {
  std::string headers = "HTTP/1.1 200 X\r\n";
  for (int i = 0; i < 5000; ++i) headers += "X-" + std::to_string(i) + ": " + std::string(80, 'a') + "\r\n";
  ScriptedServer server([&](const Request&) { return Answer{headers, false, true}; });
  EXPECT_EQ(ErrorOf(Get(At(server.port()))).code, ErrorCode::kLimitExceeded);
}

TEST_F(HttpConnectionTest, WhoDoesNotAnswerIsGivenUp) {
  ScriptedServer server([](const Request&) { return Answer{"", false, true}; });
  const Error error = ErrorOf(Get(At(server.port()), 200'000'000));
  EXPECT_EQ(error.code, ErrorCode::kCancelled);
  EXPECT_THAT(error.message, HasSubstr("did not answer within 0.2 s"));
  EXPECT_EQ(ErrorOf(Get(At(server.port()), 0)).code, ErrorCode::kCancelled);
}

TEST_F(HttpConnectionTest, WhatIsNoHttpIsSaidToBe) {
  ScriptedServer server([](const Request&) { return Answer{"SSH-2.0-OpenSSH_9.2\r\n", true}; });
  EXPECT_EQ(ErrorOf(Get(At(server.port()))).code, ErrorCode::kCorruptData);
}

TEST_F(HttpConnectionTest, AnAddressThatIsNoneIsRefused) {
  for (const char* address :
       {"evil.example/x", "a@b", "n001:80", "a b", "::1/x", "-n", "n001%eth0", "fe80::1%", "a\r\nb", "[::1]"}) {
    Endpoint endpoint;
    endpoint.address = address;
    const auto connection = HttpConnection::Open(endpoint);
    ASSERT_FALSE(connection) << address;
    EXPECT_EQ(connection.error().code, ErrorCode::kInvalidArgument) << address;
  }
  for (const char* address : {"n001", "n-1.example_x", "10.0.0.1", "::1", "fe80::1%eth0"}) {
    Endpoint endpoint;
    endpoint.address = address;
    EXPECT_TRUE(HttpConnection::Open(endpoint)) << address;
  }
}

TEST_F(HttpConnectionTest, ExactlyOneWayLeadsToANode) {
  Endpoint endpoint;
  EXPECT_EQ(HttpConnection::Open(endpoint).error().code, ErrorCode::kInvalidArgument);
  endpoint.address = "n001";
  endpoint.tunnel = {"ssh"};
  EXPECT_EQ(HttpConnection::Open(endpoint).error().code, ErrorCode::kInvalidArgument);
  endpoint.address.clear();
  endpoint.tls = true;
  EXPECT_EQ(HttpConnection::Open(endpoint).error().code, ErrorCode::kInvalidArgument);
  Endpoint longest;
  longest.unix_path = "/" + std::string(200, 'a');
  EXPECT_EQ(HttpConnection::Open(longest).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(HttpConnectionTest, TheTokenGoesWithEveryRequestAndNeverInTheClear) {
  const std::string path = (folder_ / "token").string();
  std::ofstream(path) << "s3cret\n";
  ::chmod(path.c_str(), 0600);
  ScriptedServer server([](const Request&) { return Answer{Http(200, "")}; });
  Endpoint endpoint = At(server.port());
  endpoint.token_file = path;
  ASSERT_TRUE(Get(endpoint));
  EXPECT_THAT(server.requests().at(0).head, HasSubstr("Authorization: Bearer s3cret\r\n"));
  endpoint.address = "n001";
  const auto connection = HttpConnection::Open(endpoint);
  ASSERT_FALSE(connection);
  EXPECT_EQ(connection.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(connection.error().message, HasSubstr("--tls"));
}

TEST_F(HttpConnectionTest, AFileComesInPieces) {
  const std::string file(size_t{3} << 20, 'f');
  ScriptedServer server([&](const Request&) { return Answer{Http(200, file)}; });
  std::string got;
  const Result<HttpReply> reply = Open(At(server.port()))->Fetch("/f", kLong, [&](std::string_view bytes) -> Status {
    got += bytes;
    return {};
  });
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(got, file);
  EXPECT_EQ(reply->body, "");
}

TEST_F(HttpConnectionTest, AFileThatBreaksOffIsNotWhole) {
  ScriptedServer server([](const Request&) {
    return Answer{"HTTP/1.1 200 X\r\nContent-Length: 1000\r\n\r\n" + std::string(500, 'f'), true};
  });
  const auto take = [](std::string_view) -> Status { return {}; };
  EXPECT_EQ(ErrorOf(Open(At(server.port()))->Fetch("/f", kLong, take)).code, ErrorCode::kIo);
  // Without a length its end could be anything.
  ScriptedServer endless([](const Request&) { return Answer{"HTTP/1.1 200 X\r\nConnection: close\r\n\r\nabc", true}; });
  EXPECT_EQ(ErrorOf(Open(At(endless.port()))->Fetch("/f", kLong, take)).code, ErrorCode::kCorruptData);
}

TEST_F(HttpConnectionTest, AFileThatStallsIsGivenUp) {
  ScriptedServer server([](const Request&) {
    return Answer{"HTTP/1.1 200 X\r\nContent-Length: 1000\r\n\r\n" + std::string(500, 'f'), false, true};
  });
  const Error error =
      ErrorOf(Open(At(server.port()))->Fetch("/f", 100'000'000, [](std::string_view) -> Status { return {}; }));
  EXPECT_EQ(error.code, ErrorCode::kCancelled);
  EXPECT_THAT(error.message, HasSubstr("sent nothing for 0.1 s"));
}

TEST_F(HttpConnectionTest, TheTakersErrorEndsAFile) {
  ScriptedServer server([](const Request&) { return Answer{Http(200, std::string(100000, 'f'))}; });
  const Error error = ErrorOf(Open(At(server.port()))->Fetch("/f", kLong, [](std::string_view) -> Status {
    return Error{ErrorCode::kLimitExceeded, "disk full"};
  }));
  EXPECT_EQ(error.message, "disk full");
}

TEST_F(HttpConnectionTest, ARefusalIsNotTakenForTheFile) {
  ScriptedServer server([](const Request&) { return Answer{Http(404, "no such trace")}; });
  bool called = false;
  const Result<HttpReply> reply = Open(At(server.port()))->Fetch("/f", kLong, [&](std::string_view) -> Status {
    called = true;
    return {};
  });
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->status, 404);
  EXPECT_EQ(reply->body, "no such trace");
  EXPECT_FALSE(called);
}

TEST_F(HttpConnectionTest, ATunnelCarriesRequestsAndIsKept) {
  ScriptedServer server(
      [](const Request& request) { return Answer{Http(200, std::string(request.body.size() + 100000, 't'))}; });
  const auto connection = Open(Through(server.port(), "echo started >&2; "));
  for (int i = 0; i < 4; ++i) {
    const Result<HttpReply> reply = connection->Ask(i == 2 ? Method::kPost : Method::kGet, "/", "{}", kLong);
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_GE(reply->body.size(), 100000U);
  }
  EXPECT_EQ(server.connection_count(), 1);
}

TEST_F(HttpConnectionTest, ATunnelThatDiedIsStartedAgain) {
  ScriptedServer server([](const Request&) { return Answer{Http(200, "ok"), true}; });
  const auto connection = Open(Through(server.port()));
  for (int i = 0; i < 3; ++i) {
    const Result<HttpReply> reply = connection->Ask(Method::kGet, "/", "", kLong);
    ASSERT_TRUE(reply) << reply.error().message;
  }
  EXPECT_EQ(server.connection_count(), 3);
}

TEST_F(HttpConnectionTest, WhyATunnelFailedIsTold) {
  Endpoint endpoint;
  endpoint.host = "n007";
  endpoint.tunnel = {"sh", "-c", "echo 'ssh: connect to host n007: No route to host' >&2; exit 255"};
  const Error error = ErrorOf(Get(endpoint));
  EXPECT_EQ(error.code, ErrorCode::kIo);
  EXPECT_THAT(error.message, AllOf(HasSubstr("n007 cannot be reached"), HasSubstr("ended with status 255"),
                                   HasSubstr("No route to host")));
  endpoint.tunnel = {"sh", "-c", "cat >/dev/null & echo 'lockstep: no lockstepd answers on this node' >&2; exit 1"};
  EXPECT_EQ(ErrorOf(Get(endpoint)).code, ErrorCode::kNotFound);
  endpoint.tunnel = {"no-such-program-as-this"};
  EXPECT_EQ(ErrorOf(Get(endpoint)).code, ErrorCode::kNotFound);
  endpoint.tunnel = {"sh", "-c", "echo Welcome to n007; exec sleep 1000"};
  const Error chatter = ErrorOf(Get(endpoint));
  EXPECT_EQ(chatter.code, ErrorCode::kIo);
  EXPECT_THAT(chatter.message, HasSubstr("HTTP"));
  endpoint.tunnel = {"sh", "-c", "echo 'srun: job step creation temporarily disabled' >&2; exec cat >/dev/null"};
  const Error waiting = ErrorOf(Get(endpoint, 5'000'000'000));
  EXPECT_EQ(waiting.code, ErrorCode::kCancelled);
  EXPECT_THAT(waiting.message, HasSubstr("temporarily disabled"));
}

TEST_F(HttpConnectionTest, ATunnelEndsWithItsConnection) {
  ScriptedServer server([](const Request&) { return Answer{Http(200, "ok")}; });
  const std::string path = (folder_ / "pid").string();
  {
    const auto connection = Open(Through(server.port(), "echo $$ > '" + path + "'; trap '' TERM; "));
    ASSERT_TRUE(connection->Ask(Method::kGet, "/", "", kLong));
  }
  int pid = 0;
  std::ifstream(path) >> pid;
  ASSERT_GT(pid, 0);
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST_F(HttpConnectionTest, NoSignalComesOfAClosedConnection) {
  struct sigaction before = {};
  struct sigaction deadly = {};
  deadly.sa_handler = SIG_DFL;
  ::sigaction(SIGPIPE, &deadly, &before);
  ScriptedServer server([](const Request&) { return Answer{"", true}; });
  const auto connection = Open(At(server.port()));
  const std::string large(size_t{8} << 20, 'p');
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(connection->Ask(Method::kPost, "/", large, kLong));
  Endpoint dying;
  dying.tunnel = {"true"};
  EXPECT_FALSE(Open(dying)->Ask(Method::kPost, "/", large, kLong));
  ::sigaction(SIGPIPE, &before, nullptr);
}

TEST_F(HttpConnectionTest, ManyThreadsAskAtATime) {
  ScriptedServer server([](const Request&) { return Answer{Http(200, "ok")}; });
  std::vector<std::jthread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      const auto connection = Open(At(server.port()));
      for (int request = 0; request < 20; ++request) {
        if (connection->Ask(Method::kGet, "/", "", kLong)) ++good;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(good, 320);
}

}  // namespace
}  // namespace lockstep::control
