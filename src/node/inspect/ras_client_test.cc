#include "node/inspect/ras_client.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>

#include "base/unique_fd.h"

namespace lockstep::inspect {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

/// Stands in for NCCL's RAS, which needs a GPU: speaks its line protocol over a real socket and replays one answer.
class FakeRasServer {
 public:
  enum class Kind { kJson, kTextOnly, kClosesOnFormat, kSilent, kOther, kEndless };

  FakeRasServer(Kind kind, std::string answer) : kind_(kind), answer_(std::move(answer)) {
    listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this](const std::stop_token& stop) { Serve(stop); });
  }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  int question_count() const { return question_count_; }

 private:
  static bool Wait(int fd, const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      pollfd waited = {.fd = fd, .events = POLLIN, .revents = 0};
      if (::poll(&waited, 1, 20) > 0) return true;
    }
    return false;
  }

  void Serve(const std::stop_token& stop) {
    while (Wait(listener_.get(), stop)) {
      const UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (client.valid()) Talk(client.get(), stop);
    }
  }

  static void Say(int fd, const std::string& text) { ::send(fd, text.data(), text.size(), MSG_NOSIGNAL); }

  void Talk(int fd, const std::stop_token& stop) {
    std::string bytes;
    std::array<char, 4096> chunk;
    while (Wait(fd, stop)) {
      const ssize_t size = ::recv(fd, chunk.data(), chunk.size(), 0);
      if (size <= 0) return;
      bytes.append(chunk.data(), static_cast<size_t>(size));
      for (size_t end = bytes.find('\n'); end != std::string::npos; end = bytes.find('\n')) {
        const std::string line = bytes.substr(0, end);
        bytes.erase(0, end + 1);
        if (kind_ == Kind::kSilent) continue;
        if (kind_ == Kind::kOther) return Say(fd, "HTTP/1.1 400 Bad Request\r\n\r\n");
        if (line.starts_with("CLIENT PROTOCOL")) {
          Say(fd, "SERVER PROTOCOL 2\n");
        } else if (line.starts_with("TIMEOUT")) {
          Say(fd, "OK\n");
        } else if (line.starts_with("SET FORMAT")) {
          if (kind_ == Kind::kClosesOnFormat) return;
          Say(fd, kind_ == Kind::kTextOnly ? "ERROR: Unknown command SET FORMAT json\n" : "OK\n");
        } else if (line == "VERBOSE STATUS") {
          ++question_count_;
          if (kind_ != Kind::kEndless) return Say(fd, answer_);
          const std::string block(65536, 'x');
          while (!stop.stop_requested() && ::send(fd, block.data(), block.size(), MSG_NOSIGNAL) > 0) {
          }
          return;
        } else {
          Say(fd, "ERROR: Unknown command\n");
        }
      }
    }
  }

  const Kind kind_;
  const std::string answer_;
  UniqueFd listener_;
  uint16_t port_ = 0;
  std::atomic<int> question_count_ = 0;
  std::jthread thread_;  // Last: it uses the others.
};

RasOptions For(const FakeRasServer& server) {
  RasOptions options;
  options.address = server.address();
  return options;
}

TEST(RasClientTest, JsonIsTakenWhereTheServerKnowsIt) {
  const FakeRasServer server(FakeRasServer::Kind::kJson, "{\"communicators\": []}\n");
  const auto answer = AskRas(For(server));
  ASSERT_TRUE(answer) << answer.error().ToString();
  EXPECT_TRUE(answer->is_json);
  EXPECT_EQ(answer->protocol, 2);
  EXPECT_EQ(answer->text, "{\"communicators\": []}\n");
  EXPECT_GT(answer->asked_unix_ns, 0);
}

TEST(RasClientTest, OlderServersAnswerInText) {
  for (const auto kind : {FakeRasServer::Kind::kTextOnly, FakeRasServer::Kind::kClosesOnFormat}) {
    const FakeRasServer server(kind, "Job summary\n===========\n");
    const auto answer = AskRas(For(server));
    ASSERT_TRUE(answer) << answer.error().ToString();
    EXPECT_FALSE(answer->is_json);
    EXPECT_THAT(answer->text, HasSubstr("Job summary"));
  }
}

TEST(RasClientTest, TwoQuestionsGiveTwoAnswers) {
  const FakeRasServer server(FakeRasServer::Kind::kJson, "{}");
  const auto answers = AskRasTwice(For(server), 1'000'000);
  ASSERT_TRUE(answers);
  EXPECT_THAT(*answers, SizeIs(2));
  EXPECT_EQ(server.question_count(), 2);
}

TEST(RasClientTest, ASilentServerCostsNoMoreThanTheTime) {
  const FakeRasServer server(FakeRasServer::Kind::kSilent, "");
  RasOptions options = For(server);
  options.timeout_ns = 100'000'000;
  const auto answer = AskRas(options);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kIo);
}

TEST(RasClientTest, AnAnswerHasABound) {
  const FakeRasServer server(FakeRasServer::Kind::kEndless, "");
  RasOptions options = For(server);
  options.max_bytes = 1 << 20;
  const auto answer = AskRas(options);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kLimitExceeded);
}

TEST(RasClientTest, OtherServersAreTold) {
  const FakeRasServer server(FakeRasServer::Kind::kOther, "");
  const auto answer = AskRas(For(server));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kCorruptData);
}

TEST(RasClientTest, OnlyThisMachineIsAskedUnlessToldOtherwise) {
  RasOptions options;
  for (const char* address :
       {"192.0.2.1:28028", "[2001:db8::1]:28028", "example.org:28028", "28028", ":1", "127.0.0.1:"}) {
    options.address = address;
    const auto answer = AskRas(options);
    ASSERT_FALSE(answer) << address;
    EXPECT_EQ(answer.error().code, ErrorCode::kInvalidArgument) << address;
  }
}

TEST(RasClientTest, NobodyThereIsNotFound) {
  const UniqueFd closed(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));  // Bound and not listening: refused.
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(closed.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::getsockname(closed.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  RasOptions options;
  options.address = "localhost:" + std::to_string(ntohs(address.sin_port));
  const auto answer = AskRas(options);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace lockstep::inspect
