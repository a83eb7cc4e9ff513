// HttpServer as lockstepd uses it: bodies, a Unix socket, open files, streams of events.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/http/http_server.h"
#include "base/http/testing/test_client.h"

namespace lockstep::http {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class DaemonServerTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("daemon_server_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    socket_ = folder_ / "s.sock";
    options_.takes_bodies = true;
    options_.listeners.push_back({.unix_path = socket_});
  }
  void TearDown() override {
    StopServer();
    std::filesystem::remove_all(folder_);
  }
  void Start() {
    auto server = HttpServer::Open(options_, [this](const Request& request) { return Answer(request); });
    ASSERT_TRUE(server.has_value()) << server.error().ToString();
    server_ = std::move(*server);
    thread_ = std::jthread([this] { server_->Run(); });
  }
  void StopServer() {
    if (server_) server_->Stop();
    if (thread_.joinable()) thread_.join();
  }
  Response Answer(const Request& request) {
    const std::lock_guard<std::mutex> lock(mutex_);
    seen_ = request;
    ++request_count_;
    Response response = TextResponse(200, "well\n");
    if (request.path == "/descriptor") {
      response.body = nullptr;
      response.descriptor = descriptor_;
    }
    if (request.path == "/events") {
      response = {};
      response.content_type = "text/event-stream";
      response.events = events_;
    }
    return response;
  }
  Request seen() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return seen_;
  }
  std::string Ask(const std::string& request) {
    Client client(socket_);
    client.Say(request);
    client.Finish();
    return client.Hear();
  }
  std::string Post(const std::string& header, const std::string& body) {
    return Ask("POST /api HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + header + "\r\n" + body);
  }

  ServerOptions options_;
  std::filesystem::path folder_;
  std::string socket_;
  std::unique_ptr<HttpServer> server_;
  std::jthread thread_;
  std::shared_ptr<UniqueFd> descriptor_;
  std::shared_ptr<EventStream> events_ = std::make_shared<EventStream>();
  std::atomic<int> request_count_ = 0;
  std::mutex mutex_;
  Request seen_;
};

TEST_F(DaemonServerTest, AUnixSocketsPeerIsKnownByItsCredentialsAndAnyHostIsFine) {
  Start();
  EXPECT_THAT(Ask("GET /x HTTP/1.1\r\nHost: node17\r\nConnection: close\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(Peer::Kind::kUnixSocket, seen().peer.kind);
  EXPECT_EQ(::getuid(), seen().peer.uid);
  EXPECT_EQ("unix", seen().peer.address);
  EXPECT_THAT(Ask("GET /x HTTP/1.1\r\nConnection: close\r\n\r\n"), StartsWith("HTTP/1.1 200"));
}

TEST_F(DaemonServerTest, TheSocketsFileIsForAllAndGoesWithTheServer) {
  Start();
  struct stat about = {};
  ASSERT_EQ(0, ::stat(socket_.c_str(), &about));
  EXPECT_EQ(0666U, about.st_mode & 07777);
  StopServer();
  EXPECT_FALSE(std::filesystem::exists(socket_));
}

TEST_F(DaemonServerTest, ASocketThatSomebodyAnswersOnIsLeftAlone) {
  Start();
  const auto second = HttpServer::Open(options_, [](const Request&) { return Response(); });
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(ErrorCode::kIo, second.error().code);
  EXPECT_THAT(second.error().message, HasSubstr("in use"));
  EXPECT_THAT(Post("Content-Length: 1\r\n", "x"), StartsWith("HTTP/1.1 200"));
}

TEST_F(DaemonServerTest, ASocketThatWasLeftBehindIsReplacedAndOtherFilesAreNot) {
  {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_.c_str());
    const UniqueFd dead(::socket(AF_UNIX, SOCK_STREAM, 0));
    ASSERT_EQ(0, ::bind(dead.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)));
  }
  ASSERT_TRUE(std::filesystem::exists(socket_));
  Start();
  EXPECT_THAT(Post("Content-Length: 1\r\n", "x"), StartsWith("HTTP/1.1 200"));
  StopServer();
  std::ofstream(socket_) << "mine";
  const auto second = HttpServer::Open(options_, [](const Request&) { return Response(); });
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(ErrorCode::kInvalidArgument, second.error().code);
  EXPECT_TRUE(std::filesystem::exists(socket_));
}

TEST_F(DaemonServerTest, ASocketThatCannotBeIsAnErrorThatNamesIt) {
  for (const std::filesystem::path& path : {folder_ / "none" / "s.sock", folder_ / std::string(200, 'x')}) {
    options_.listeners = {{.unix_path = path.string()}};
    const auto server = HttpServer::Open(options_, [](const Request&) { return Response(); });
    ASSERT_FALSE(server.has_value());
    EXPECT_THAT(server.error().message, HasSubstr(path.string()));
  }
}

TEST_F(DaemonServerTest, PostAndDeleteComeWithTheirBodies) {
  Start();
  EXPECT_THAT(Post("Content-Length: 5\r\nContent-Type: application/json\r\nAuthorization: Bearer t\r\n", "hello"),
              StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(Method::kPost, seen().method);
  EXPECT_EQ("hello", seen().body);
  EXPECT_EQ("application/json", seen().content_type);
  EXPECT_EQ("Bearer t", seen().authorization);
  EXPECT_THAT(Ask("DELETE /api/1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(Method::kDelete, seen().method);
  EXPECT_EQ("", seen().body);
  EXPECT_EQ("", seen().authorization);
}

TEST_F(DaemonServerTest, ABodyInChunksIsPutTogether) {
  Start();
  EXPECT_THAT(Post("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nHost: evil\r\n\r\n"),
              StartsWith("HTTP/1.1 200"));
  EXPECT_EQ("abcde", seen().body);
}

TEST_F(DaemonServerTest, ALargeBodyArrivesWholeAndALargerOneIsRefusedUnread) {
  Start();
  const std::string body(size_t{1} << 20, 'b');
  EXPECT_THAT(Post("Content-Length: 1048576\r\n", body), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(body, seen().body);
  EXPECT_EQ(1, request_count_);
  EXPECT_THAT(Post("Content-Length: 1048577\r\n", ""), StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(Post("Content-Length: 18446744073709551615\r\n", ""), StartsWith("HTTP/1.1 413"));
  EXPECT_EQ(1, request_count_);
}

TEST_F(DaemonServerTest, ARequestBehindABodyIsAnsweredToo) {
  Start();
  const std::string post = "POST /one HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc";
  const std::string answer = Ask(post + "GET /two HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(2, request_count_);
  EXPECT_NE(answer.find("200 OK"), answer.rfind("200 OK"));
}

TEST_F(DaemonServerTest, AClientThatAsksWhetherToGoOnIsTold) {
  Start();
  Client client(socket_);
  client.Say("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_THAT(client.HearUntil("\r\n\r\n"), StartsWith("HTTP/1.1 100"));
  client.Say("ok");
  EXPECT_THAT(client.HearUntil("well\n"), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ("ok", seen().body);
}

TEST_F(DaemonServerTest, OtherMethodsAreRefused) {
  Start();
  for (const char* method : {"PUT", "PATCH", "OPTIONS", "TRACE", "CONNECT", "MADEUP"}) {
    const std::string answer = Ask(std::string(method) + " /x HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 405")) << method;
    EXPECT_THAT(answer, HasSubstr("Allow: GET, HEAD, POST, DELETE")) << method;
  }
  EXPECT_EQ(0, request_count_);
}

TEST_F(DaemonServerTest, AnOpenFileIsSentWholeAndInParts) {
  const std::string path = folder_ / "file";
  std::string content;
  for (int i = 0; content.size() < 300'000; ++i) content += std::to_string(i) + "\n";
  std::ofstream(path) << content;
  descriptor_ = std::make_shared<UniqueFd>(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::filesystem::remove(path);  // What it is called does not matter.
  Start();
  const auto body = [](const std::string& answer) { return answer.substr(answer.find("\r\n\r\n") + 4); };
  const std::string get = "GET /descriptor HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
  for (int i = 0; i < 2; ++i) EXPECT_EQ(content, body(Ask(get + "\r\n")));
  const std::string part = Ask(get + "Range: bytes=70000-170000\r\n\r\n");
  EXPECT_THAT(part, StartsWith("HTTP/1.1 206"));
  EXPECT_EQ(content.substr(70'000, 100'001), body(part));
  EXPECT_THAT(Ask(get + "Range: bytes=999999-\r\n\r\n"), StartsWith("HTTP/1.1 416"));
  descriptor_ = std::make_shared<UniqueFd>(::open("/", O_RDONLY | O_CLOEXEC));
  EXPECT_THAT(Ask(get + "\r\n"), StartsWith("HTTP/1.1 404"));
}

TEST_F(DaemonServerTest, EventsGoOutAsTheyComeAndEndWithTheStream) {
  Start();
  Client client(socket_);
  client.Say("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::string header = client.HearUntil("\r\n\r\n");
  EXPECT_THAT(header, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(header, HasSubstr("Content-Type: text/event-stream\r\n"));
  EXPECT_THAT(header, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(header, Not(HasSubstr("Content-Length")));
  EXPECT_TRUE(events_->Push("data: one\n\n"));
  EXPECT_EQ("b\r\ndata: one\n\n\r\n", client.HearUntil("one\n\n\r\n"));
  EXPECT_TRUE(events_->Push("data: two\n\n"));
  events_->Close();
  EXPECT_FALSE(events_->Push("data: late\n\n"));
  EXPECT_EQ("b\r\ndata: two\n\n\r\n0\r\n\r\n", client.Hear());
  EXPECT_TRUE(client.closed());
}

TEST_F(DaemonServerTest, AnOldClientGetsEventsWithoutChunks) {
  Start();
  EXPECT_TRUE(events_->Push("data: one\n\n"));  // Before anybody listens.
  events_->Close();
  Client client(socket_);
  client.Say("GET /events HTTP/1.0\r\nHost: localhost\r\n\r\n");
  const std::string answer = client.Hear();
  EXPECT_THAT(answer, Not(HasSubstr("chunked")));
  EXPECT_THAT(answer, HasSubstr("\r\n\r\ndata: one\n\n"));
}

TEST_F(DaemonServerTest, AClientThatGoesAwayIsNoticed) {
  Start();
  {
    Client client(socket_);
    client.Say("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.HearUntil("\r\n\r\n");
  }
  while (events_->Push("data: more\n\n")) std::this_thread::yield();
  EXPECT_TRUE(events_->is_abandoned());
}

TEST_F(DaemonServerTest, AClientThatDoesNotReadIsDropped) {
  Start();
  Client client(socket_);
  client.Say("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  client.HearUntil("\r\n\r\n");
  const std::string event(10'000, 'e');
  size_t count = 0;
  while (count < 100'000 && events_->Push(event)) ++count;
  EXPECT_LT(count, 100'000U);
  client.Hear();
  EXPECT_TRUE(client.closed());
}

TEST_F(DaemonServerTest, AQuietStreamIsKeptAliveByComments) {
  options_.limits.keep_alive_seconds = 1;
  options_.limits.idle_seconds = 3;
  options_.limits.header_seconds = 3;
  Start();
  Client client(socket_);
  client.Say("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  client.HearUntil("\r\n\r\n");
  for (int i = 0; i < 5; ++i) EXPECT_THAT(client.HearUntil(": keep-alive\n\n"), HasSubstr(": keep-alive\n\n"));
  EXPECT_TRUE(events_->Push("data: still\n\n"));
  EXPECT_THAT(client.HearUntil("still"), HasSubstr("data: still"));
}

TEST_F(DaemonServerTest, StopEndsStreams) {
  Start();
  Client client(socket_);
  client.Say("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  client.HearUntil("\r\n\r\n");
  StopServer();
  EXPECT_FALSE(events_->Push("data: late\n\n"));
  client.Hear();
  EXPECT_TRUE(client.closed());
}

}  // namespace
}  // namespace lockstep::http
