#include "node/control/client/node_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "node/control/api/json.h"
#include "node/control/client/testing/patience.h"
#include "node/control/client/testing/scripted_server.h"

namespace lockstep::control {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::Http;
using testing::kLong;
using ::testing::Not;
using testing::ScriptedServer;
using ::testing::StartsWith;
using Request = ScriptedServer::Request;
using Answer = ScriptedServer::Answer;

std::unique_ptr<NodeClient> ClientOf(uint16_t port) {
  Endpoint endpoint;
  endpoint.address = "127.0.0.1";
  endpoint.port = port;
  Result<std::unique_ptr<NodeClient>> client = NodeClient::Create(endpoint);
  EXPECT_TRUE(client) << client.error().message;
  return std::move(*client);
}

NodeStatus SampleStatus() {
  NodeStatus status;
  status.host = "n001";
  status.version = "1.2.3";
  status.daemon_pid = 42;
  status.now_unix_ns = 1'700'000'000'000'000'000;
  return status;
}

Process SampleProcess() {
  Process process;
  process.id = "42-1000";
  process.pid = 42;
  process.start_ticks = 1000;
  process.client_pids = {42, 1};
  process.host = "n001";
  return process;
}

Capture SampleCapture() {
  Capture capture;
  capture.id = "abcdefgh01234567";
  capture.spec.group = "g";
  return capture;
}

TEST(NodeClientTest, EachCallIsItsRequest) {
  ScriptedServer server([](const Request& request) {
    if (request.head.starts_with("GET /api/v1/status ")) return Answer{Http(200, ToJson(SampleStatus()))};
    if (request.head.starts_with("GET /api/v1/processes "))
      return Answer{Http(200, ToJson(std::vector<Process>{SampleProcess()}))};
    if (request.head.starts_with("GET /api/v1/captures ")) {
      return Answer{Http(200, ToJson(std::vector<Capture>{SampleCapture()}))};
    }
    if (request.head.starts_with("POST /api/v1/captures ")) {
      Capture made = SampleCapture();
      const Result<CaptureSpec> spec = ReadCaptureSpec(request.body);
      if (spec) made.spec = *spec;
      return Answer{Http(201, ToJson(made))};
    }
    if (request.head.starts_with("GET /api/v1/captures/abc ")) return Answer{Http(200, ToJson(SampleCapture()))};
    if (request.head.starts_with("DELETE /api/v1/captures/abc ")) return Answer{Http(200, ToJson(SampleCapture()))};
    if (request.head.starts_with("GET /api/v1/captures/abc/traces/r0_1.json ")) return Answer{Http(200, "{}")};
    return Answer{Http(404, "?")};
  });
  const auto client = ClientOf(server.port());
  const Result<NodeStatus> status = client->Status(kLong);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(status->host, "n001");
  const auto processes = client->Processes(kLong);
  ASSERT_TRUE(processes) << processes.error().message;
  EXPECT_EQ(processes->size(), 1U);
  CaptureSpec spec;
  spec.group = "mine";
  spec.window.duration_ns = 250'000'000;
  const Result<Capture> started = client->StartCapture(spec, kLong);
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(started->spec.group, "mine");
  EXPECT_EQ(started->spec.window.duration_ns, 250'000'000);
  const auto captures = client->Captures(kLong);
  ASSERT_TRUE(captures) << captures.error().message;
  EXPECT_EQ(captures->at(0).id, "abcdefgh01234567");
  EXPECT_TRUE(client->GetCapture("abc", kLong));
  EXPECT_TRUE(client->CancelCapture("abc", kLong));
  std::string bytes;
  EXPECT_TRUE(client->Download("abc", "r0_1.json", kLong, [&](std::string_view piece) -> lockstep::Status {
    bytes += piece;
    return {};
  }));
  EXPECT_EQ(bytes, "{}");
}

TEST(NodeClientTest, ADaemonsErrorIsItsOwn) {
  ScriptedServer server([](const Request&) {
    return Answer{Http(409, ToJson(Error{ErrorCode::kFailedPrecondition, "rank 3 is being traced"}))};
  });
  const Result<Capture> capture = ClientOf(server.port())->StartCapture({}, kLong);
  ASSERT_FALSE(capture);
  EXPECT_EQ(capture.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(capture.error().message, "rank 3 is being traced");
}

TEST(NodeClientTest, AStatusWithoutAnErrorOfOursGetsTheCodeNextToIt) {
  const std::vector<std::pair<int, ErrorCode>> codes = {{400, ErrorCode::kInvalidArgument},
                                                        {401, ErrorCode::kPermissionDenied},
                                                        {403, ErrorCode::kPermissionDenied},
                                                        {404, ErrorCode::kNotFound},
                                                        {409, ErrorCode::kFailedPrecondition},
                                                        {413, ErrorCode::kLimitExceeded},
                                                        {503, ErrorCode::kLimitExceeded},
                                                        {500, ErrorCode::kIo},
                                                        {302, ErrorCode::kIo}};
  for (const auto& [status, code] : codes) {
    ScriptedServer server([answer = status](const Request&) { return Answer{Http(answer, "words")}; });
    const Result<NodeStatus> reply = ClientOf(server.port())->Status(kLong);
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, code) << status;
    EXPECT_THAT(reply.error().message, HasSubstr(std::to_string(status)));
    EXPECT_EQ(ClientOf(server.port())
                  ->Download("a", "b", kLong, [](std::string_view) -> lockstep::Status { return {}; })
                  .error()
                  .code,
              code);
  }
}

TEST(NodeClientTest, RefusedIsPermissionDeniedWhateverTheBodySays) {
  ScriptedServer server([](const Request&) { return Answer{Http(401, ToJson(Error{ErrorCode::kIo, "no token"}))}; });
  const Result<NodeStatus> reply = ClientOf(server.port())->Status(kLong);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(reply.error().message, "no token");
}

TEST(NodeClientTest, AnotherServersAnswerIsNotTakenForADaemons) {
  for (const char* body : {"<html>Grafana</html>", "", "{}", "[]", "{\"host\":7}"}) {
    ScriptedServer server([&](const Request&) { return Answer{Http(200, body)}; });
    const Result<NodeStatus> reply = ClientOf(server.port())->Status(kLong);
    ASSERT_FALSE(reply) << body;
    EXPECT_EQ(reply.error().code, ErrorCode::kCorruptData) << body;
  }
}

TEST(NodeClientTest, IdentifiersCannotLeadElsewhere) {
  ScriptedServer server([](const Request&) { return Answer{Http(200, "")}; });
  const auto client = ClientOf(server.port());
  for (const char* id : {"", "..", "../status", "a/b", "a?b", "a b", "a%2fb", "a\r\nb", ".hidden"}) {
    const Result<Capture> capture = client->GetCapture(id, kLong);
    ASSERT_FALSE(capture);
    EXPECT_EQ(capture.error().code, ErrorCode::kInvalidArgument) << id;
    EXPECT_FALSE(client->CancelCapture(id, kLong));
    EXPECT_FALSE(client->Download("a", id, kLong, [](std::string_view) -> lockstep::Status { return {}; }));
  }
  EXPECT_EQ(server.connection_count(), 0);
}

class LocalSocketsTest : public ::testing::Test {
 protected:
  LocalSocketsTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lockstep-local-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    ::unsetenv("LOCKSTEP_SOCKET");
    ::setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
    std::filesystem::create_directories(folder_ / "lockstep");
    socket_ = (folder_ / "lockstep" / "lockstepd.sock").string();
  }
  ~LocalSocketsTest() override {
    ::unsetenv("XDG_RUNTIME_DIR");
    ::unsetenv("LOCKSTEP_SOCKET");
    std::filesystem::remove_all(folder_);
  }

  std::filesystem::path folder_;
  std::string socket_;
};

TEST_F(LocalSocketsTest, AUsersOwnDaemonIsFound) {
  EXPECT_THAT(LocalSockets(), Not(Contains(socket_)));
  ScriptedServer server(socket_, [](const Request&) { return Answer{Http(200, ToJson(SampleStatus()))}; });
  EXPECT_THAT(LocalSockets(), Contains(socket_));
  ::setenv("LOCKSTEP_SOCKET", socket_.c_str(), 1);
  EXPECT_EQ(LocalSockets().front(), socket_);
  const Result<std::unique_ptr<NodeClient>> client = ConnectLocal(kLong);
  ASSERT_TRUE(client) << client.error().message;
  EXPECT_EQ((*client)->endpoint().unix_path, socket_);
}

TEST_F(LocalSocketsTest, WhatOthersCouldHavePutThereIsLeftOut) {
  ScriptedServer server(socket_, [](const Request&) { return Answer{}; });
  const std::string link = (folder_ / "link.sock").string();
  std::filesystem::create_symlink(socket_, link);
  ::setenv("LOCKSTEP_SOCKET", link.c_str(), 1);
  EXPECT_THAT(LocalSockets(), Not(Contains(link)));
  ::chmod((folder_ / "lockstep").c_str(), 0777);
  EXPECT_THAT(LocalSockets(), Not(Contains(socket_)));
  ::chmod((folder_ / "lockstep").c_str(), 0755);
  EXPECT_THAT(LocalSockets(), Contains(socket_));
  if (::geteuid() != 0) return;  // Another owner's takes root to make.
  ASSERT_EQ(::lchown(socket_.c_str(), 12345, 12345), 0);
  EXPECT_THAT(LocalSockets(), Not(Contains(socket_)));
}

TEST_F(LocalSocketsTest, TheErrorSaysWhereWasLookedAndWhatToStart) {
  ::setenv("LOCKSTEP_SOCKET", "/nowhere/s.sock", 1);
  const Error error = NoLocalDaemon();
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_THAT(error.message,
              AllOf(StartsWith("no lockstepd answers on this node"), HasSubstr("/nowhere/s.sock"), HasSubstr(socket_),
                    HasSubstr("/run/lockstep/lockstepd.sock"), HasSubstr("systemctl start lockstepd")));
}

TEST_F(LocalSocketsTest, ADeadDaemonsSocketIsNobody) {
  {
    const ScriptedServer server(socket_, [](const Request&) { return Answer{}; });
  }
  ::setenv("LOCKSTEP_SOCKET", socket_.c_str(), 1);
  if (LocalSockets().size() > 1) GTEST_SKIP() << "a daemon runs on this machine";
  const Result<std::unique_ptr<NodeClient>> client = ConnectLocal(kLong);
  ASSERT_FALSE(client);
  EXPECT_THAT(client.error().message, StartsWith("no lockstepd answers on this node"));
}

}  // namespace
}  // namespace lockstep::control
