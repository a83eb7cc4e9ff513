#include "node/agent/engines/engine_client.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "base/unique_fd.h"

namespace lockstep::agent {
namespace {

/// Answers each request by its path: "/long" with 7 MiB of which the last byte never comes, else with "short".
class Server {
 public:
  Server() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
    ::listen(socket_.get(), 32);
    socklen_t length = sizeof(address);
    ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    accepts_ = std::jthread([this] {
      while (true) {
        const int fd = ::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) return;
        answers_.emplace_back([fd = UniqueFd(fd)] { Answer(fd.get()); });
      }
    });
  }
  ~Server() {
    ::shutdown(socket_.get(), SHUT_RDWR);
    accepts_.join();
  }
  std::string Url(const char* path) const { return "http://127.0.0.1:" + std::to_string(port_) + path; }

 private:
  static void Answer(int fd) {
    char request[4096];
    const ssize_t got = ::recv(fd, request, sizeof(request), 0);
    const std::string_view asked(request, static_cast<size_t>(std::max<ssize_t>(got, 0)));
    const bool is_long = asked.starts_with("GET /long");
    const size_t bytes = is_long ? size_t{7} << 20 : 5;
    const std::string text = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n" +
                             (is_long ? std::string(bytes - 1, '#') : "short");
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t put = ::send(fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (put <= 0) return;
      sent += static_cast<size_t>(put);
    }
    ::recv(fd, request, sizeof(request), 0);  // Until the other side has enough of it.
  }

  UniqueFd socket_;
  uint16_t port_ = 0;
  std::vector<std::jthread> answers_;
  std::jthread accepts_;
};

TEST(EngineClientTest, LongAnswersTogetherAreCutAndCostTheShortOnesNothing) {
  constexpr size_t kLong = 8;
  Server server;
  std::vector<EngineClient::Ask> asks(kLong, {server.Url("/long"), ""});
  asks.push_back({server.Url("/"), ""});
  std::vector<std::optional<Result<std::string>>> answers(asks.size());
  {
    EngineClient client;
    client.Fetch(asks, std::chrono::seconds(5), [&](size_t ask_idx, Result<std::string> answer) {
      EXPECT_FALSE(answers[ask_idx]);
      answers[ask_idx] = std::move(answer);
    });
  }
  size_t cut_count = 0;
  for (size_t i = 0; i < kLong; ++i) {
    ASSERT_TRUE(answers[i]);
    ASSERT_FALSE(*answers[i]);
    cut_count += answers[i]->error().code == ErrorCode::kLimitExceeded ? 1 : 0;
  }
  EXPECT_GE(cut_count, kLong - (kMostEngineBytesHeld >> 20) / 7);
  ASSERT_TRUE(answers[kLong]);
  ASSERT_TRUE(*answers[kLong]) << (*answers[kLong]).error().ToString();
  EXPECT_EQ(**answers[kLong], "short");
}

}  // namespace
}  // namespace lockstep::agent
