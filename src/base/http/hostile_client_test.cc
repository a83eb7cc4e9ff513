// HttpServer and clients that cost more than they should.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/http/http_server.h"
#include "base/http/testing/test_client.h"

namespace lockstep::http {
namespace {

// A sanitizer keeps what was freed for a while, and shadows of all of it.
#if defined(LOCKSTEP_SANITIZED)
constexpr uint64_t kMemoryFactor = 8;
#else
constexpr uint64_t kMemoryFactor = 1;
#endif

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kClosingGet = "GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

class HostileClientTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.takes_bodies = true;
    socket_ = std::filesystem::path(testing::TempDir()) / ("hostile_" + std::to_string(::getpid()) + ".sock");
    options_.listeners.push_back({.unix_path = socket_});
  }
  void TearDown() override {
    if (server_) server_->Stop();
    if (thread_.joinable()) thread_.join();
  }
  void Start() {
    auto server = HttpServer::Open(options_, [this](const Request& request) {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++request_count_;
      peer_ = request.peer;
      return TextResponse(200, "well\n");
    });
    ASSERT_TRUE(server.has_value()) << server.error().ToString();
    server_ = std::move(*server);
    thread_ = std::jthread([this] { server_->Run(); });
  }
  std::string Ask(const std::string& request) {
    Client client(server_->port());
    client.Say(request);
    return client.Hear();
  }
  /// Until the server has counted that many open connections.
  void WaitForOpen(uint64_t count) {
    while (server_->connection_counts().open != count) std::this_thread::yield();
  }
  static uint64_t ResidentBytes() {
    std::ifstream statm("/proc/self/statm");
    uint64_t size = 0;
    uint64_t resident = 0;
    statm >> size >> resident;
    return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  }

  ServerOptions options_;
  std::string socket_;
  std::unique_ptr<HttpServer> server_;
  std::jthread thread_;
  std::atomic<int> request_count_ = 0;
  std::mutex mutex_;
  Peer peer_;
};

TEST_F(HostileClientTest, ALoopbackClientsUserIsKnown) {
  Start();
  EXPECT_THAT(Ask(kClosingGet), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(Peer::Kind::kLoopback, peer_.kind);
  EXPECT_EQ(::getuid(), peer_.uid);
  EXPECT_THAT(peer_.address, StartsWith("127.0.0.1:"));
}

TEST_F(HostileClientTest, OneUsersConnectionsAreCountedTogetherWhereverTheyComeFrom) {
  options_.limits.connection_count_per_source = 4;
  options_.limits.crowded_seconds = 3600;
  Start();
  std::vector<std::unique_ptr<Client>> clients;
  clients.push_back(std::make_unique<Client>(server_->port()));
  clients.push_back(std::make_unique<Client>(server_->port(), "127.0.0.2"));
  clients.push_back(std::make_unique<Client>(socket_));
  clients.push_back(std::make_unique<Client>(socket_));
  WaitForOpen(4);
  Client fifth(server_->port(), "127.0.0.3");
  fifth.Hear();
  EXPECT_TRUE(fifth.closed());
  EXPECT_EQ(1U, server_->connection_counts().refused);
}

TEST_F(HostileClientTest, AThousandIdleConnectionsKeepNobodyOut) {
  options_.limits.crowded_seconds = 0;
  Start();
  std::vector<std::unique_ptr<Client>> idle;
  for (int i = 0; i < 1000; ++i) {
    idle.push_back(std::make_unique<Client>(server_->port()));
    ASSERT_TRUE(idle.back()->connected());
    if (i % 100 == 0) {
      EXPECT_THAT(Ask(kClosingGet), StartsWith("HTTP/1.1 200")) << i;
    }
  }
  EXPECT_THAT(Ask(kClosingGet), StartsWith("HTTP/1.1 200"));
  const ConnectionCounts counts = server_->connection_counts();
  EXPECT_LE(counts.open, options_.limits.connection_count_per_source);
  EXPECT_EQ(0U, counts.refused);
  EXPECT_GT(counts.displaced, 900U);
}

TEST_F(HostileClientTest, HeadersThatComeByteByByteAndRefusedOnesKeepNobodyOut) {
  options_.limits.crowded_seconds = 0;
  Start();
  std::vector<std::unique_ptr<Client>> slow;
  // Those that come later begin in mid-request and are refused.
  const std::string request = "GET /slow HTTP/1.1\r\nHost: localhost\r\n";
  for (size_t i = 0; i < request.size(); ++i) {
    for (int k = 0; k < 5; ++k) slow.push_back(std::make_unique<Client>(server_->port()));
    for (const auto& client : slow) client->Say(request.substr(i, 1));
    ASSERT_THAT(Ask(kClosingGet), StartsWith("HTTP/1.1 200")) << i;
  }
}

TEST_F(HostileClientTest, ABodyThatDoesNotComeIsNotWaitedForForEver) {
  options_.limits.body_seconds = 1;
  Start();
  const std::string post = "POST /x HTTP/1.1\r\nHost: localhost\r\n";
  for (const std::string& body :
       {std::string("Content-Length: 10\r\n\r\nhello"), std::string("Transfer-Encoding: chunked\r\n\r\n5\r\nhel"),
        std::string("Content-Length: 10\r\nExpect: 100-continue\r\n\r\n")}) {
    Client client(server_->port());
    client.Say(post + body);
    client.Hear();
    EXPECT_TRUE(client.closed()) << body;
  }
  EXPECT_EQ(0, request_count_);
}

TEST_F(HostileClientTest, AllBodiesTogetherHaveALimit) {
  options_.limits.all_bodies_bytes = 100'000;
  Start();
  const auto post = [](size_t length, size_t sent) {
    return "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n" +
           std::string(sent, 'x');
  };
  Client first(server_->port());
  first.Say(post(50'002, 50'001));
  Client second(server_->port());
  second.Say(post(50'001, 50'000));
  // One byte more than there is room for, so one of the two is refused and never both, however they are read in turn.
  pollfd waiting[2] = {{first.fd(), POLLIN, 0}, {second.fd(), POLLIN, 0}};
  ASSERT_EQ(1, ::poll(waiting, 2, 20'000));
  Client& refused = waiting[0].revents != 0 ? first : second;
  Client& taken = waiting[0].revents != 0 ? second : first;
  EXPECT_THAT(refused.HearUntil("\r\n\r\n"), StartsWith("HTTP/1.1 503"));
  taken.Say("x");
  EXPECT_THAT(taken.HearUntil("well\n"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Ask(post(70'000, 70'000) + kClosingGet), StartsWith("HTTP/1.1 200")) << "what was held is free again";
}

TEST_F(HostileClientTest, FloodsOfBodiesTakeNoMemory) {
  Start();
  EXPECT_THAT(Ask(kClosingGet), StartsWith("HTTP/1.1 200"));
  const uint64_t before = ResidentBytes();
  const std::string start = "POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string piece(1 << 16, 'a');
  std::string tiny_chunks;
  for (int i = 0; i < 10'000; ++i) tiny_chunks += "1\r\nx\r\n";
  std::string long_extensions;
  for (int i = 0; i < 50; ++i) long_extensions += "1;" + std::string(4000, 'e') + "\r\nx\r\n";
  const std::vector<std::string> floods = {"10000\r\n" + piece + "\r\n", tiny_chunks, long_extensions,
                                           "0\r\nX: " + piece};
  for (const std::string& flood : floods) {
    Client client(server_->port());
    ASSERT_TRUE(client.Say(start));
    size_t said = 0;
    while (said < (size_t{64} << 20) && client.Say(flood)) said += flood.size();
    EXPECT_LT(said, size_t{64} << 20) << "was never cut off: " << flood.substr(0, 20);
  }
  EXPECT_EQ(1, request_count_);
  EXPECT_LT(ResidentBytes(), before + kMemoryFactor * (uint64_t{8} << 20));
}

TEST_F(HostileClientTest, AMillionHeaderLinesAreCutOff) {
  Start();
  for (const std::string& target : {std::to_string(server_->port()), socket_}) {
    Client client = target == socket_ ? Client(socket_) : Client(server_->port());
    client.Say("POST /x HTTP/1.1\r\nHost: localhost\r\n");
    int count = 0;
    while (count < 1'000'000 && client.Say("a: b\r\n")) ++count;
    EXPECT_LT(count, 1'000'000) << target;
  }
  EXPECT_EQ(0, request_count_);
}

TEST_F(HostileClientTest, AClientThatDoesNotReadItsAnswerIsDropped) {
  options_.limits.write_seconds = 1;
  options_.limits.connection_count_per_source = 1;
  options_.limits.crowded_seconds = 3600;
  const auto large = std::make_shared<const std::string>(size_t{64} << 20, 'x');
  auto server = HttpServer::Open(options_, [&](const Request&) {
    Response response;
    response.body = large;
    return response;
  });
  ASSERT_TRUE(server.has_value());
  server_ = std::move(*server);
  thread_ = std::jthread([this] { server_->Run(); });
  Client client(server_->port());
  client.Say(kClosingGet);
  while (server_->connection_counts().accepted < 1) std::this_thread::yield();
  WaitForOpen(0);
}

// What an idle connection costs; about 2 KiB, as tested without TLS.
TEST_F(HostileClientTest, IdleConnectionsAreSmall) {
  options_.limits.connection_count = 2000;
  options_.limits.connection_count_per_source = 2000;
  Start();
  EXPECT_THAT(Ask(kClosingGet), StartsWith("HTTP/1.1 200"));
  rlimit files = {};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const int count = files.rlim_cur > 2500 ? 1000 : 300;
  const uint64_t before = ResidentBytes();
  std::vector<std::unique_ptr<Client>> idle;
  for (int i = 0; i < count; ++i) {
    idle.push_back(std::make_unique<Client>(server_->port()));
    ASSERT_TRUE(idle.back()->Say("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    ASSERT_THAT(idle.back()->HearUntil("well\n"), HasSubstr("well"));
  }
  const uint64_t bytes_each = (ResidentBytes() - before) / static_cast<uint64_t>(count);
  RecordProperty("bytes_each", static_cast<int>(bytes_each));
  EXPECT_LT(bytes_each, kMemoryFactor * 8192);
}

}  // namespace
}  // namespace lockstep::http
